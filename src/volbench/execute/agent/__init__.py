"""Agent: standard-library Python for 3.6 and newer that does what the engine needs of a machine.

On the controller's own machine its functions are called directly; on another one they arrive as
one program (`execute.program_bundle`) that `main` runs. Modules here import the standard library
and one another only, never print, and take and return what JSON can carry. A failure is an
`AgentError`.
"""
