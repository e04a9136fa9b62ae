// What the scripts take from elsewhere: Bokeh's library, and the settings that Python writes.
declare const Bokeh: any;

declare const SETTINGS: {
  column_formats: [string, string][];
  defaults: Record<string, any>;
  identity: string[];
  ramps: Record<string, string[]>;
  themes: Record<string, { colours: Record<string, string>; hatches: Record<string, string>; is_grey: boolean }>;
};
