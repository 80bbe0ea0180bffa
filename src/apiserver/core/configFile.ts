/** A configuration file that the server follows (L3): the composition root reads files, components get the text and its changes. */

export interface ConfigFile {
  readonly path: string
  /** @throws Error that names the file, when it cannot be read */
  read(): Promise<string>
  /** Calls back with the new text whenever it differs from what was read last, until the signal aborts. A file that is missing for a while is no change. */
  follow(changed: (text: string) => void, signal: AbortSignal): void
}
