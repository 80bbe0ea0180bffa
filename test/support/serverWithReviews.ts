/** A test API server that answers reviews and token requests too, as a whole one does, and allows every request. */
import { generateKeyPairSync } from 'node:crypto'
import { type ResourceFacts, resourceKey } from '#api/discovery/resources'
import type { ApiServerConfig } from '#apiserver/apiServer'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

/** @param resources those of them that are off by default are turned on */
export function startServerWithReviews(config: ApiServerConfig = {}, resources: readonly ResourceFacts[] = []): Promise<TestApiServer> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return startTestApiServer({
    config,
    optional: new Set(resources.map(({ group, version, resource }) => resourceKey(group, version, resource))),
    deps: (registry) => {
      const { computedResources } = createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey })
      return { computedResources }
    },
  })
}
