/** The kubelet alone (L5), with kubelet's flags and configuration file, in the foreground. Upstream: cmd/kubelet (v1.36). */
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { parseDuration } from '#api/machinery/duration'
import type { Component } from '#base/component'
import { announceFeatures, type FeatureGateSettings } from '#base/featureGates'
import { curvesOf } from '#base/tlsCurves'
import { connectCri } from '#grpc/criClient'
import { createExec } from '#host/exec'
import type { AuthenticationSettings, AuthorizationSettings, ConfigurationDocument } from '#kubelet/configuration/document'
import { settingsOf } from '#kubelet/configuration/settings'
import { createCallLog } from '#kubelet/core/callLog'
import { createKubeletHost } from '#kubelet/core/host'
import { followedFeatures } from '#kubelet/core/resourceConfig'
import { createKubelet } from '#kubelet/kubelet'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { recordedCri } from '#kubelet/runtime/containerd/recordedCri'
import { apiAuth, type KubeletAuthSettings } from '#kubelet/server/auth'
import { createKubeletServer, createReadOnlyServer, type KubeletServerTls } from '#kubelet/server/kubeletServer'
import { syncLoopFault } from '#kubelet/server/syncLoop'
import { createConfigFile } from '../apiserver/configFile.ts'
import { UsageError } from '../apiserver/options/flags.ts'
import { authoritiesOf, pairOf, readFollowed } from '../apiserver/options/namedFiles.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { runInForeground } from '../component/foreground.ts'
import { bootstrap, type KubeletAccess, openKubeletAccess, standaloneAccess, wantedClientCertificate } from '../component/kubelet/apiAccess.ts'
import { createCertificateManager } from '../component/kubelet/certificateManager.ts'
import { createCertificateStore } from '../component/kubelet/certificateStore.ts'
import { configurationFlags } from '../component/kubelet/configurationFlags.ts'
import { effectiveConfiguration, type KubeletFlags, kubeletFlags } from '../component/kubelet/kubeletFlags.ts'
import { networkProbes } from '../component/kubelet/networkProbe.ts'
import { defaultAddress } from '../component/kubelet/nodeAddresses.ts'
import { kubeletPages } from '../component/kubelet/pages.ts'
import { applyProcessLimits, checkSwap } from '../component/kubelet/processLimits.ts'
import { componentFamilies } from '../componentMetrics.ts'
import { suitesOfVersion13, tlsRulesOf } from '../tlsNames.ts'
import type { TracingSettings } from '../tracing/tracingConfiguration.ts'
import { ownProgram, type ProcessTools, processTools, runTogether, withTracing } from './processTools.ts'

export const kubeletGroups = { kubelet: kubeletFlags, configuration: configurationFlags } as const

type Options = OptionsOf<typeof kubeletGroups>

/** Resolves with the exit code. */
export function runKubeletProcess(args: readonly string[], signal: AbortSignal): Promise<number> {
  const program = { command: 'kubelet', about: 'The kubelet of Skiff, alone in the foreground.', needs: '', groups: kubeletGroups, run }
  return runInForeground(program, args, signal)
}

async function run({ kubelet: flags, configuration, flags: shown }: Options, signal: AbortSignal): Promise<void> {
  const { given, document, warnings } = effectiveConfiguration(flags.file, configuration.document)
  const logging = (document.logging ?? {}) as { readonly format?: 'text' | 'json'; readonly verbosity?: number }
  const logs = { verbosity: flags.verbosity ?? logging.verbosity ?? 2, format: flags.loggingFormat ?? logging.format }
  const { tools, ...tracing } = await withTracing(processTools('kubelet', logs), await tracingOf(document))
  tools.metrics.restrict({ showHidden: ((document.showHiddenMetricsForVersion as string | undefined) ?? '') !== '' })
  for (const text of [...flags.warnings, ...configuration.deprecations, ...warnings]) tools.log.warn(text)
  announceFeatures(tools, (document.featureGates ?? {}) as FeatureGateSettings, followedFeatures)
  const nodeName = (flags.hostnameOverride || os.hostname()).trim().toLowerCase()
  await applyProcessLimits(document, tools.log)
  const swap = checkSwap(await fs.readFile('/proc/swaps', 'utf8').catch(() => ''), document, given)
  if (swap !== undefined) tools.log.warn(swap)
  const store = createCertificateStore(flags.certDir, 'kubelet-client')
  const isStandalone = flags.kubeconfig === ''
  if (isStandalone) checkStandalone(document)
  else await bootstrap({ nodeName, kubeconfig: flags.kubeconfig, bootstrapKubeconfig: flags.bootstrapKubeconfig, store }, tools, signal)
  const rateLimit = { qps: document.kubeAPIQPS as number, burst: document.kubeAPIBurst as number }
  const access = isStandalone ? standaloneAccess() : await openKubeletAccess(flags.kubeconfig, rateLimit, tools)
  const clientCertificate = createCertificateManager({
    name: 'client',
    store,
    client: () => access.unlimited,
    wanted: () => wantedClientCertificate(nodeName),
    tools,
    onRenewed: access.use,
  })
  const rotates = !isStandalone && document.rotateCertificates === true && (await store.current()) !== undefined
  const parts = { flags, given, document, nodeName, access, isStandalone, tools, shown }
  try {
    await runTogether([...(await nodeComponents(parts, signal)), ...(rotates ? [clientCertificate] : [])], tools, signal)
  } finally {
    await access.close()
    await tracing.close()
  }
}

interface Parts {
  readonly flags: KubeletFlags
  readonly given: ConfigurationDocument
  readonly document: ConfigurationDocument
  readonly nodeName: string
  readonly access: KubeletAccess
  readonly isStandalone: boolean
  readonly tools: ProcessTools
  readonly shown: Readonly<Record<string, string>>
}

async function nodeComponents(parts: Parts, signal: AbortSignal): Promise<Component[]> {
  const { flags, given, document, nodeName, access, tools } = parts
  const log = tools.log
  const sockets = socketsOf(document)
  const timeoutMs = parseDuration(document.runtimeRequestTimeout as string)
  const calls = createCallLog(tools.clock)
  const runtimeClient = recordedCri(connectCri(sockets.runtime, timeoutMs, tools.tracer), calls)
  const imageClient = sockets.images === sockets.runtime ? runtimeClient : recordedCri(connectCri(sockets.images, timeoutMs, tools.tracer), calls)
  const { addresses, preferred } = flags.nodeIP
  const nodeIPs = addresses.length > 0 ? addresses : [await defaultAddress(preferred)]
  const resolvConf = document.resolvConf as string
  const kubelet = createKubelet(
    {
      client: access.client,
      eventClient: access.limited({ qps: document.eventRecordQPS as number, burst: document.eventBurst as number }),
      isStandalone: parts.isStandalone,
      ...tools,
      log,
      calls,
      runtime: createContainerdRuntime({ client: runtimeClient, imageClient, clock: tools.clock }),
      host: await createKubeletHost(),
      nodeNetwork: { probe: networkProbes(createExec(), ownProgram()) },
    },
    {
      ...settingsOf(document),
      nodeName,
      nodeIPs,
      nodeLabels: flags.nodeLabels,
      externalCloudProvider: flags.externalCloudProvider,
      rootDirectory: flags.rootDir,
      imageCredentialProviderConfigPath: flags.imageCredentialProviderConfig,
      imageCredentialProviderBinDir: flags.imageCredentialProviderBinDir,
      resolvConf: resolvConf === '' ? '' : await fs.readFile(resolvConf, 'utf8').catch(() => ''),
    },
  )
  const health = document.healthzPort === 0 ? [] : [await healthPort(document, () => syncLoopFault(kubelet.view, tools.clock))]
  const firewall = document.makeIPTablesUtilChains === true ? [await loopbackFirewall(tools)] : []
  const components: Component[] = [kubelet, ...health, ...firewall]
  if (document.enableServer !== true) return components
  const serving = await servingFor(parts, nodeIPs, (tls) => server.setTls(tls), signal)
  const told = { view: kubelet.view, clock: tools.clock, log, metrics: tools.metrics, metricFamilies: () => componentFamilies(tools.metrics) }
  const address = document.address as string
  const readOnlyPort = (document.readOnlyPort as number | undefined) ?? 0
  const server = createKubeletServer(
    {
      ...told,
      auth: apiAuth(access.unlimited, tools.clock, nodeName, authSettings(document)),
      configuration: given,
      pages: kubeletPages({ clock: tools.clock, flags: parts.shown }),
    },
    { address, port: document.port as number, ...serving.tls },
  )
  const readOnly = readOnlyPort === 0 ? [] : [createReadOnlyServer(told, { address, port: readOnlyPort })]
  return [...components, server, ...readOnly, ...serving.components]
}

async function healthPort({ healthzBindAddress, healthzPort }: ConfigurationDocument, fault: () => string | undefined): Promise<Component> {
  const { createHealthPort } = await import('../component/kubelet/healthPort.ts')
  return createHealthPort(healthzBindAddress as string, healthzPort as number, fault)
}

async function selfSigned(host: string, dir: string, { clock }: ProcessTools) {
  const { servingCertificate } = await import('../component/servingCertificate.ts')
  return servingCertificate('kubelet', host, dir, clock.now())
}

async function loopbackFirewall({ clock, log }: ProcessTools): Promise<Component> {
  const { createLoopbackFirewall } = await import('../component/kubelet/loopbackFirewall.ts')
  return createLoopbackFirewall({ exec: createExec(), clock, log })
}

async function tracingOf({ tracing }: ConfigurationDocument): Promise<TracingSettings | undefined> {
  if (!tracing) return undefined
  const { tracingFaults } = await import('../tracing/tracingConfiguration.ts')
  const faults = tracingFaults(tracing as TracingSettings, 'tracing.')
  if (faults.length > 0) throw new UsageError(faults.map((fault) => `invalid configuration: ${fault}`))
  return tracing as TracingSettings
}

/** The runtime's socket, and that of the image service, which is the runtime's own where nothing else is said. */
function socketsOf({ containerRuntimeEndpoint, imageServiceEndpoint }: ConfigurationDocument): { readonly runtime: string; readonly images: string } {
  const runtime = socketOf('containerRuntimeEndpoint', containerRuntimeEndpoint as string)
  return { runtime, images: imageServiceEndpoint ? socketOf('imageServiceEndpoint', imageServiceEndpoint as string) : runtime }
}

function socketOf(field: string, endpoint: string): string {
  const socket = endpoint.replace(/^unix:\/\//, '')
  if (!path.isAbsolute(socket)) throw new UsageError([`${field} "${endpoint}" is not supported: use unix:///path/of/the.sock`])
  return socket
}

/** No API server can review tokens and rights. @throws UsageError for a configuration that needs one */
function checkStandalone({ enableServer, authentication, authorization }: ConfigurationDocument): void {
  if (enableServer !== true) return
  const faults = [
    ...((authentication as AuthenticationSettings).webhook.enabled
      ? ['no client provided, cannot use webhook authentication: name a --kubeconfig, or set authentication.webhook.enabled to false']
      : []),
    ...((authorization as AuthorizationSettings).mode === 'Webhook'
      ? ['no client provided, cannot use webhook authorization: name a --kubeconfig, or set authorization.mode to AlwaysAllow']
      : []),
  ]
  if (faults.length > 0) throw new UsageError(faults)
}

function authSettings(document: ConfigurationDocument): KubeletAuthSettings {
  const { webhook, anonymous } = document.authentication as AuthenticationSettings
  const { mode, webhook: answers } = document.authorization as AuthorizationSettings
  const ms = (text: string) => parseDuration(text) ?? 0
  return {
    anonymous: anonymous.enabled,
    tokens: webhook.enabled,
    tokenTtlMs: ms(webhook.cacheTTL),
    mode: mode as KubeletAuthSettings['mode'],
    authorizedTtlMs: ms(answers.cacheAuthorizedTTL),
    unauthorizedTtlMs: ms(answers.cacheUnauthorizedTTL),
  }
}

function servingRules(document: ConfigurationDocument): Pick<KubeletServerTls, 'minVersion' | 'ciphers' | 'curves'> {
  const { minVersion, ciphers, faults } = tlsRulesOf(document.tlsMinVersion as string | undefined, (document.tlsCipherSuites as string[] | undefined) ?? [])
  if (faults.length > 0) throw new UsageError(faults)
  return {
    minVersion,
    curves: curvesOf((document.tlsCurvePreferences as number[] | undefined) ?? []),
    ...(ciphers ? { ciphers: [...suitesOfVersion13, ...ciphers] } : {}),
  }
}

interface Serving {
  readonly tls: KubeletServerTls
  readonly components: readonly Component[]
}

/** Named files, a certificate that the cluster signs, or a self-signed one, in this order. Files are followed. */
async function servingFor(parts: Parts, nodeIPs: readonly string[], apply: (tls: KubeletServerTls) => void, signal: AbortSignal): Promise<Serving> {
  const { flags, document, nodeName, access, tools } = parts
  const rules = servingRules(document)
  const context = { file: (name: string) => createConfigFile(path.resolve(name), tools.clock) }
  const { x509 } = document.authentication as AuthenticationSettings
  const clientCa = await readFollowed([x509.clientCAFile ?? ''], context, authoritiesOf)
  const named = await readFollowed([(document.tlsCertFile as string) ?? '', (document.tlsPrivateKeyFile as string) ?? ''], context, pairOf)
  const store = createCertificateStore(flags.certDir, 'kubelet-server')
  let made = named.value ?? (await store.current()) ?? (await selfSigned(nodeIPs[0] ?? nodeName, flags.certDir, tools))
  const tls = (): KubeletServerTls => ({ ...(named.value ?? made), clientCa: clientCa.value, ...rules })
  const changed = () => apply(tls())
  const refused = (error: Error) => tools.log.warn('A certificate file is not taken', { error: error.message })
  for (const followed of [clientCa, named]) followed.follow(changed, refused, signal)
  if (named.value || document.serverTLSBootstrap !== true) return { tls: tls(), components: [] }
  const manager = createCertificateManager({
    name: 'server',
    store,
    client: () => access.unlimited,
    wanted: () => ({
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      signerName: 'kubernetes.io/kubelet-serving',
      usage: 'server auth',
      hosts: [nodeName, ...nodeIPs],
    }),
    tools,
    onRenewed: (pair) => {
      made = pair
      changed()
    },
  })
  return { tls: tls(), components: [manager] }
}
