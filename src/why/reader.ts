/** What explanations read from (L2): objects by their paths, with the rights of the one who asks. The command line and the page bring their own. */
import type { Frozen } from '#api/machinery/meta'

/** The object, or why it is not shown; neither: there is no such object. */
export interface Seen<T> {
  readonly found?: Frozen<T> | undefined
  readonly notShown?: string | undefined
}

export type Query = Readonly<Record<string, string | readonly string[]>>

export interface ObjectReader {
  get<T>(path: string, query?: Query): Promise<Seen<T>>
  /** The items of a list. */
  list<T>(path: string, query?: Query): Promise<Seen<readonly T[]>>
}
