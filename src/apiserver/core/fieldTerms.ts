/** The terms of a request's field selector, for authorization and the tracking of watches (L3). */
import { type FieldTerm, parseFieldSelector } from '#api/machinery/fieldSelector'

/** Undefined without a selector, and for one that does not parse: the handler refuses that later, with a message for authorized users only. */
export function fieldTerms(text: string | undefined): readonly FieldTerm[] | undefined {
  if (!text) return undefined
  try {
    return parseFieldSelector(text).terms
  } catch {
    return undefined
  }
}
