/** A reporter for node's test runner: one JSON line per test (suites themselves are left out). */
import { count } from './testEnd.mjs'

export default async function* lines(source) {
  for await (const event of source) {
    count(event)
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { name, skip, todo, details } = event.data
    if (details?.type === 'suite') continue
    const skipped = skip !== undefined && skip !== false
    const result = event.type === 'test:fail' && !todo ? 'fail' : skipped ? 'skip' : 'pass'
    yield `${JSON.stringify({ name, result, ...(skipped ? { reason: String(skip) } : {}), ms: details?.duration_ms })}\n`
  }
}
