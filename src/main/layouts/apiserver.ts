/**
 * The API server alone (L5), with kube-apiserver's flags, in the foreground: the store is a file of ours, certificates that no flag names are made and
 * renewed. Upstream: cmd/kube-apiserver.
 */
import type { ApiServer } from '#apiserver/apiServer'
import type { Encryption } from '#apiserver/encryption/encryption'
import { createClient } from '#client/clientOverTransport'
import { makePrivateDirectory } from '#host/files'
import { certificateFiles, encryptionFromOptions, followCertificates, signerFromOptions, tlsFromOptions } from '../apiserver/fromOptions.ts'
import { openStore } from '../apiserver/openStore.ts'
import { UsageError } from '../apiserver/options/flags.ts'
import { aloneGroups } from '../apiserver/options/index.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { portProbe } from '../component/componentHealth.ts'
import { runInForeground } from '../component/foreground.ts'
import { createLivePki, live } from '../pki/livePki.ts'
import { ensurePki } from '../pki/pki.ts'
import { ensureKubeletAccess } from './addonAccess.ts'
import { type ApiServerParts, assembleApiServer } from './assembleApiServer.ts'
import { offerNodeGroups } from './nodeGroups.ts'
import { processTools, runTogether, withTracing } from './processTools.ts'

/** Resolves with the exit code when the signal has stopped it, or at once when the flags cannot be used. */
export function runApiServer(args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = 'The API server of Skiff, alone in the foreground.'
  return runInForeground({ command: 'apiserver', about, needs: '--data-dir DIR', groups: aloneGroups, run: serve }, args, signal)
}

type Options = OptionsOf<typeof aloneGroups>

/** Where upstream's API server expects these components, whatever their flags say. */
const schedulerPort = 10_259
const controllerManagerPort = 10_257

async function serve(options: Options, signal: AbortSignal): Promise<void> {
  const { serving } = options
  const { tools, ...tracing } = await withTracing(processTools('apiserver', options.logs, options.metrics), options.tracing)
  await makePrivateDirectory(serving.dataDir)
  const hosts = [
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    '127.0.0.1',
    ...new Set([serving.host, serving.advertised ?? serving.host, ...serving.certNames]),
  ]
  const load = () => ensurePki(serving.certDir, hosts, tools.clock.now())
  const certificates = createLivePki(await load(), load, tools)
  const { pki } = certificates
  const store = await openStore(options.storage.etcd, serving.dataDir, tools, signal)
  const encryption = await encryptionOf(options, tools)
  const externalSigner = await signerFromOptions(options, tools).catch(usersFault)
  const server = serverOf(options, { tools, log: tools.log, pki, store, encryption, externalSigner })
  const nodeGroups = serving.nodeApis ? [offerNodeGroups(server, tools)] : []
  const stopped = new AbortController()
  const running = Promise.all([server.run(stopped.signal), encryption?.run(stopped.signal)])
  const tls = () => tlsFromOptions(options, serving.serving.value ?? pki.apiserver, { clientCa: pki.ca.cert, requestHeaderCa: pki.frontProxyCa.cert })
  const listener = await server.listen({ ...options.secureServing.listen, host: serving.host, port: serving.port, tls: tls() })
  certificates.onLook(() => listener.setTls(tls()))
  followCertificates([serving.serving, ...certificateFiles(options)], certificates.look, tools.log, signal)
  tools.log.info('Serving securely', { address: `${listener.host}:${listener.port}` })
  await runTogether([certificates.component, ...nodeGroups], tools, signal)
  await server.announceShutdown()
  stopped.abort(signal.reason)
  await listener.close()
  await running
  await store.close()
  await tracing.close()
}

/** A configuration that cannot be used is reported as a usage error. */
async function encryptionOf(options: Options, tools: ApiServerParts['tools']): Promise<Encryption | undefined> {
  return encryptionFromOptions(options, { ...tools, log: tools.log.with('encryption') }).catch(usersFault)
}

function usersFault(error: Error): never {
  throw new UsageError([error.message])
}

function serverOf(options: Options, parts: ApiServerParts): ApiServer {
  const { serving } = options
  const { advertised, host, port } = serving
  const { pki } = parts
  return assembleApiServer(options, parts, {
    serviceCidr: serving.serviceCidr,
    externalAddress: port === 0 ? undefined : `${advertised ?? host}:${port}`,
    // The administrator grants rights to a certificate that a flag names, as upstream.
    postStartHooks: serving.kubeletClient ? [] : [(transport, signal) => ensureKubeletAccess(createClient(transport), signal)],
    components: [portProbe('scheduler', schedulerPort), portProbe('controller-manager', controllerManagerPort)],
    config: {
      advertised: () => (advertised === undefined ? undefined : { address: advertised, port }),
      proxyClient: serving.proxyClient ?? pki.frontProxyClient,
      kubelet: live(() => ({
        ...(serving.kubeletClient ?? pki.apiserverKubeletClient),
        ca: serving.kubeletCa ?? pki.ca.cert,
        addressTypes: options.reach.kubeletAddressTypes,
      })),
    },
  })
}
