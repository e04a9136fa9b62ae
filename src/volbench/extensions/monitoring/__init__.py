"""Monitoring: metrics of running and finished campaigns for Prometheus and Grafana."""
