// What the scripts take from elsewhere: Bokeh's library, and the settings that Python writes.
declare const Bokeh: any;

declare const SETTINGS: {
  column_formats: [string, string][];
  defaults: Record<string, any>;
  identity: string[];
  ramps: Record<string, string[]>;
  themes: Record<string, { colours: Record<string, string>; hatches: Record<string, string>; is_grey: boolean }>;
};

declare class DecompressionStream {
  constructor(format: "gzip");
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}
