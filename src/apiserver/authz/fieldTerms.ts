/** What a field selector narrows a question to (L3, pure). Upstream: the selectors of apiserver/pkg/authorization/authorizer Attributes (v1.36). */
import { type FieldTerm, parseFieldSelector } from '#api/machinery/fieldSelector'

/** A selector that does not parse narrows nothing: the question is wider then, never narrower. */
export function fieldTerms(text: string | undefined): readonly FieldTerm[] | undefined {
  if (!text) return undefined
  try {
    return parseFieldSelector(text).terms
  } catch {
    return undefined
  }
}
