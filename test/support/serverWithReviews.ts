/** A test API server that answers reviews and token requests too, as a whole one does, and allows every request. */
import { generateKeyPairSync } from 'node:crypto'
import type { ApiServerConfig } from '#apiserver/apiServer'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

export function startServerWithReviews(config: ApiServerConfig = {}): Promise<TestApiServer> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return startTestApiServer({
    config,
    deps: (registry) => {
      const { computedResources } = createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey })
      return { computedResources }
    },
  })
}
