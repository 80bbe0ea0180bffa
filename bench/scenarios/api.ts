/** Throughput and latency of the API, over TLS and HTTP/2: every verb, lists of 1,000 and 10,000 pods, and the fan-out of watches. */
import { type ApiBench, namespace, prepareNamespace } from '../api/apiBench.ts'
import { measureLists } from '../api/lists.ts'
import { loads } from '../api/loads.ts'
import { measureLoad } from '../api/measureLoad.ts'
import { measureWatches } from '../api/watches.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { createLoadClient } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'

const inFlight = 64
const repeats = 3

export const api: Scenario = {
  name: 'api',
  about: `every verb, ${inFlight} requests in flight; lists; watches`,
  run: (context) =>
    withCluster(context.dir, 'api', ['--runtime', 'simulated', '--nodes', '1'], async ({ address, serverPid }) => {
      const client = await createLoadClient(address)
      try {
        const bench: ApiBench = { client, serverPid, inFlight, context, versions: [] }
        await prepareNamespace(client, namespace)
        const measured: Measurement[] = []
        for (const load of loads) measured.push(await measureLoad(bench, load, repeats))
        return [...measured, ...(await measureWatches(bench)), ...(await measureLists(bench))]
      } finally {
        client.close()
      }
    }),
}
