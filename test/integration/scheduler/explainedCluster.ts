/** The real API server with authorization and a real scheduler that explains itself: what `skiff why` asks. */
import { generateKeyPairSync } from 'node:crypto'
import { createSecurity } from '#apiserver/security'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { schedulerComponent } from '#main/component/schedulerComponent'
import { schedulingPage } from '#main/component/schedulingPage'
import { createExplainer } from '#scheduler/explain/explainer'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

export interface ExplainedCluster {
  readonly api: TestApiServer
  close(): Promise<void>
}

export async function startExplainedCluster(): Promise<ExplainedCluster> {
  const explainer = createExplainer()
  const random = seededRandom(3)
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const api = await startTestApiServer({
    deps: ({ reader }) => {
      const { authorizers, postStartHooks, computedResources } = createSecurity({ reader, clock: realClock, random, serviceAccountKey })
      return { authorizers, postStartHooks, computedResources, pages: [schedulingPage(explainer)] }
    },
  })
  const stop = new AbortController()
  const running = schedulerComponent(api.client, { clock: realClock, random, log: noLog, metrics: noMetrics, explainer }).run(stop.signal)
  const close = async () => {
    stop.abort(new Error('the test is over'))
    await running
    await api.close()
  }
  return { api, close }
}
