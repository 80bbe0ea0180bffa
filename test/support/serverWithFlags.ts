/** A real API server configured as users do it: by kube-apiserver's flags, with the whole of its security. */
import { generateKeyPairSync } from 'node:crypto'
import { type Logger, noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { createConfigFile } from '#main/apiserver/configFile'
import {
  authoritiesFromOptions,
  configFromOptions,
  depsFromOptions,
  encryptionFromOptions,
  registryConfigOf,
  signerFromOptions,
} from '#main/apiserver/fromOptions'
import { serverOptions } from '#main/apiserver/options/index'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

/** @param more `log` gets what the server's security logs */
export async function startServerWithFlags(flags: readonly string[], more: TestApiServerOptions & { readonly log?: Logger } = {}): Promise<TestApiServer> {
  const clock = more.clock ?? realClock
  const options = await serverOptions(flags, { file: (name) => createConfigFile(name, clock) })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const encryption = await encryptionFromOptions(options, { clock, random: seededRandom(2), log: noLog, metrics: more.metrics ?? noMetrics })
  const externalSigner = await signerFromOptions(options, { clock, log: noLog, metrics: more.metrics ?? noMetrics })
  return startTestApiServer({
    ...more,
    optional: registryConfigOf(options, '').optional,
    encryption,
    authorities: authoritiesFromOptions(options),
    deps: (registry) => ({
      ...depsFromOptions(options, {
        reader: registry.reader,
        waitUntilCurrent: () => registry.cacher.waitUntilCurrent(),
        clock,
        random: seededRandom(1),
        serviceAccountKey,
        externalSigner,
        metrics: more.metrics,
        log: more.log,
      }),
      ...more.deps?.(registry),
    }),
    config: { ...configFromOptions(options), ...more.config },
  })
}
