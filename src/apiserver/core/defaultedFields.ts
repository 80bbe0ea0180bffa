/** Names the fields that decoding and defaulting added to a body (L3), for the reader of a trace. Values are left out: they may be secret. */
import { fieldChanges } from '#api/debug/fieldChanges'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { deepCopy } from '#base/frozen'
import type { RequestTracer } from '#trace/requestTracer'

const mostBytes = 64 * 1024
const mostFields = 24

/** Called with the body before it is decoded in place; the result with the object afterwards. */
export function tracingDefaults(trace: RequestTracer, value: unknown): (decoded: object) => void {
  const before = (stringifyExactly(value) ?? '').length <= mostBytes ? deepCopy(value) : undefined
  return (decoded) => {
    const added = before === undefined ? [] : fieldChanges(before, decoded, { showSecrets: false }).filter(({ from }) => from === undefined)
    const paths = added.slice(0, mostFields).map(({ path }) => path)
    const more = added.length > paths.length ? `, and ${added.length - paths.length} more` : ''
    trace.step('decoding', paths.length === 0 ? 'no field was defaulted' : `defaulted ${paths.join(', ')}${more}`)
  }
}
