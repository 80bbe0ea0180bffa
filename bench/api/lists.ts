/** Lists of many pods, as one answer and in pages. */
import type { Measurement } from '../scenario.ts'
import { encoded, pod } from '../tools/objects.ts'
import { type ApiBench, prepareNamespace } from './apiBench.ts'

const sizes = [1000, 10_000]
const repeats = 5
const namespace = 'lists'
const path = `/api/v1/namespaces/${namespace}/pods`

export async function measureLists({ client, inFlight, context }: ApiBench): Promise<Measurement[]> {
  await prepareNamespace(client, namespace)
  const measured: Measurement[] = []
  let made = 0
  for (const size of sizes) {
    context.progress(`lists of ${size} pods`)
    const first = made
    const filled = await client.loop(size - made, inFlight, (index) => ({
      method: 'POST',
      path,
      body: encoded(pod(namespace, `p-${first + index}`, { schedulerName: 'nobody' })),
      contentType: 'application/json',
    }))
    made = size
    measured.push({ what: `create pods, up to ${size}`, unit: '/s', values: [filled.perSecond] })
    for (const [what, query] of [
      ['most recent', ''],
      ['from the cache (resourceVersion=0)', '?resourceVersion=0'],
    ] as const) {
      const times: number[] = []
      let bytes = 0
      for (let repeat = 0; repeat < repeats; repeat++) {
        context.signal.throwIfAborted()
        const result = await client.loop(
          1,
          1,
          () => ({ method: 'GET', path: `${path}${query}` }),
          (answer) => {
            bytes = answer.bytes
          },
        )
        times.push(result.seconds * 1000)
      }
      measured.push({ what: `list ${size} pods, ${what}`, unit: 'ms', values: times, note: `${(bytes / 1e6).toFixed(1)} MB` })
    }
  }
  return measured
}
