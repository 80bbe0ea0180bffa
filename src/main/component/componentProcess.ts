/**
 * What the processes of single components have in common (L5): a way to the API server, a port of their own, the lead. Upstream: Run of
 * cmd/kube-scheduler/app/server.go and cmd/kube-controller-manager/app/controllermanager.go (v1.36).
 */
import type { HealthCheck } from '#apiserver/core/health'
import type { Listener } from '#apiserver/server/listener'
import { abortScope } from '#base/abortScope'
import { announceFeatures, type FeatureGateSettings } from '#base/featureGates'
import { followCertificates } from '../apiserver/fromOptions.ts'
import type { LogSettings } from '../apiserver/options/logs.ts'
import { namedCertificates, type SecureServingOptions } from '../apiserver/options/secureServing.ts'
import { type ProcessTools, processTools } from '../layouts/processTools.ts'
import type { MetricRules } from '../prometheus.ts'
import { type ApiAccess, openAccess } from './access.ts'
import { openClusterTrust } from './clusterTrust.ts'
import { delegatedAuthenticators, delegatedAuthorizers } from './delegatedAuth.ts'
import { type Fence, type LeaseSettings, runWhileLeading } from './leading.ts'
import type { DelegatedAuthenticationSettings } from './options/delegatedAuthentication.ts'
import type { DelegatedAuthorizationSettings } from './options/delegatedAuthorization.ts'
import type { SecureServingSettings } from './options/secureServing.ts'
import { openSecurePort, type SecurePortParts } from './securePort.ts'
import { servingCertificate } from './servingCertificate.ts'

export interface ComponentOptions {
  readonly serving: SecureServingSettings
  readonly tls: SecureServingOptions
  readonly authentication: DelegatedAuthenticationSettings
  readonly authorization: DelegatedAuthorizationSettings
  readonly debugging: { readonly profiling: boolean }
  readonly logs: LogSettings
  readonly metrics: MetricRules
  readonly features: FeatureGateSettings
  readonly flags: Readonly<Record<string, string>>
}

export interface ComponentProcess {
  /** e.g. kube-scheduler: in leases, user agents, certificates. */
  readonly component: string
  /** In the log. */
  readonly name: string
  readonly options: ComponentOptions
  readonly kubeconfig: { readonly file: string; readonly master: string }
  readonly lease: LeaseSettings
  readonly configz: Readonly<Record<string, unknown>>
  /** Feature gates that it can turn; absent: none. */
  readonly turnable?: readonly string[]
  /** More pages of its port. */
  readonly pages?: SecurePortParts['pages']
  /** Works until the signal aborts. All that it writes goes through `fence`. */
  act(parts: { readonly access: ApiAccess; readonly tools: ProcessTools; readonly fence: Fence }, signal: AbortSignal): Promise<void>
}

/** Resolves when the signal has stopped it. @throws Error as soon as the lead is lost: nothing is tidied up then */
export async function runComponentProcess(process: ComponentProcess, signal: AbortSignal): Promise<void> {
  const { component, options, kubeconfig, lease } = process
  const tools = processTools(process.name, options.logs, options.metrics)
  announceFeatures(tools, options.features, process.turnable)
  const access = await openAccess(kubeconfig.file, kubeconfig.master, tools)
  using over = abortScope(signal)
  const port = await openPort(process, tools, over.signal, signal)
  // A call for the lease that hangs must leave time for another.
  const client = access.client(`${component}/leader-election`, { requestTimeoutMs: lease.renewDeadlineMs / 2 })
  await runWhileLeading({ component, client, tools, lease }, (leading, fence) => process.act({ access, tools, fence }, leading), signal)
  over.abort(new Error('it has ended'))
  await port?.close()
  await access.close()
}

async function openPort(process: ComponentProcess, tools: ProcessTools, open: AbortSignal, stop: AbortSignal): Promise<Listener | undefined> {
  const { component, options } = process
  const { serving, authentication, authorization } = options
  if (serving.port === 0) return undefined
  const [reviewer, judge] = await Promise.all([optionalAccess(authentication.kubeconfig, tools), optionalAccess(authorization.kubeconfig, tools)])
  const asked = reviewer?.client(`${component}/authentication`)
  const trust = await openClusterTrust(asked, authentication, { ...tools, log: tools.log.with('authentication') })
  const made = serving.serving.value ?? (await servingCertificate(component, serving.host, serving.certDir, tools.clock.now()))
  const { listen, rules, named } = options.tls
  const tls = () => ({ ...(serving.serving.value ?? made), ...trust.authorities(), ...rules, named: namedCertificates(options.tls) })
  const shutdown: HealthCheck = { name: 'shutdown', check: () => (stop.aborted ? 'process is shutting down' : undefined) }
  const listener = await openSecurePort(
    {
      component,
      tools,
      authenticators: delegatedAuthenticators(asked, trust, authentication.tokenTtlMs, tools),
      authorizers: delegatedAuthorizers(judge, authorization, tools),
      checks: [],
      readyChecks: [shutdown],
      configz: process.configz,
      pages: process.pages,
      flags: options.flags,
      profiling: options.debugging.profiling,
    },
    { ...listen, host: serving.host, port: serving.port, tls: tls() },
  )
  trust.onChange(() => listener.setTls(tls()))
  followCertificates([serving.serving, ...named.map(({ pair }) => pair)], () => listener.setTls(tls()), tools.log, open)
  void trust.follow(open)
  tools.log.info('Serving securely', { address: `${listener.host}:${listener.port}` })
  return listener
}

/** Without a file: inside a pod, its service account; elsewhere nothing. */
async function optionalAccess(file: string, tools: ProcessTools): Promise<ApiAccess | undefined> {
  return file === '' && !process.env.KUBERNETES_SERVICE_HOST ? undefined : openAccess(file, '', tools)
}
