/** The service proxy alone (L5), with kube-proxy's flags and configuration file, in the foreground. Upstream: cmd/kube-proxy/app/server.go (v1.36). */
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { parseDuration } from '#api/machinery/duration'
import { isIpv6, isUnspecified, parseIp } from '#api/machinery/ip'
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { announceFeatures } from '#base/featureGates'
import { aborted } from '#base/orAborted'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createEventRecorder } from '#client/eventRecorder'
import { createConntrack } from '#host/conntrack'
import { createExec } from '#host/exec'
import { documentText, type ProxyConfigurationDocument } from '#proxy/configuration/document'
import { periodsOf, splitHostPort } from '#proxy/configuration/validate'
import { ProxyHealth } from '#proxy/health'
import { proxyModes } from '#proxy/modes/index'
import { createProxy } from '#proxy/proxy'
import { createConfigFile } from '../apiserver/configFile.ts'
import { UsageError } from '../apiserver/options/flags.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { type ApiAccess, openAccess } from '../component/access.ts'
import { runInForeground } from '../component/foreground.ts'
import { applyHostSettings } from '../component/kubeProxy/hostSettings.ts'
import { type ProxyFlags, proxyFlags } from '../component/kubeProxy/proxyFlags.ts'
import { createHealthPort, createMetricsPort } from '../component/kubeProxy/proxyPorts.ts'
import { type ProcessTools, processTools } from './processTools.ts'

const component = 'kube-proxy'
export const kubeProxyGroups = { proxy: proxyFlags } as const

/** Resolves with the exit code. */
export function runKubeProxyProcess(args: readonly string[], signal: AbortSignal): Promise<number> {
  const program = { command: component, about: 'The service proxy of Skiff, alone in the foreground.', needs: '', groups: kubeProxyGroups, run }
  return runInForeground(program, args, signal)
}

async function run({ proxy: flags, flags: shown }: OptionsOf<typeof kubeProxyGroups>, signal: AbortSignal): Promise<void> {
  const { document, warnings } = flags
  const logs = { verbosity: flags.verbosity ?? document.logging.verbosity ?? 2, format: flags.loggingFormat ?? document.logging.format }
  const tools = processTools(component, logs)
  tools.metrics.restrict({ showHidden: document.showHiddenMetricsForVersion !== '' })
  for (const warning of warnings) tools.log.warn(warning)
  if (flags.writeConfigTo !== '') {
    await fs.writeFile(flags.writeConfigTo, documentText(document))
    return tools.log.info('Wrote configuration', { file: flags.writeConfigTo })
  }
  if (flags.cleanup) return removeRules(tools)
  announceFeatures(tools, document.featureGates)
  await applyHostSettings(document.conntrack, document.oomScoreAdj, tools.log)
  if (flags.initOnly) return prepareMode(document, tools)
  const access = await openAccess(document.clientConnection.kubeconfig, flags.master, tools)
  try {
    await runProxy(flags, shown, { access, tools }, signal)
  } finally {
    await access.close()
  }
}

/** @throws Error when the rules of a mode could not be removed */
async function removeRules({ log }: ProcessTools): Promise<void> {
  const failures: Error[] = []
  for (const mode of proxyModes) {
    await mode.cleanUp(createExec()).catch((error: Error) => {
      log.error(error, 'Failed to remove the rules of a proxy mode', { mode: mode.name })
      failures.push(error)
    })
  }
  if (failures.length > 0) throw new Error('encountered an error while tearing down rules')
}

async function prepareMode({ mode }: ProxyConfigurationDocument, { log }: ProcessTools): Promise<void> {
  await proxyModes.find(({ name }) => name === mode)?.prepare?.({ exec: createExec(), log })
}

interface Surroundings {
  readonly access: ApiAccess
  readonly tools: ProcessTools
}

async function runProxy(flags: ProxyFlags, shown: Readonly<Record<string, string>>, { access, tools }: Surroundings, signal: AbortSignal): Promise<void> {
  const { document } = flags
  const { clock, log } = tools
  const nodeName = flags.hostnameOverride || (document.hostnameOverride || os.hostname()).trim().toLowerCase()
  const { qps, burst } = document.clientConnection
  const client = access.client(component, { rateLimit: { qps, burst } })
  const informers = createSharedInformerFactory(client, tools, {
    // A cluster has many nodes, and the proxy needs its own.
    tweakListOptions: ({ resource }, options) => (resource === 'nodes' ? { ...options, fieldSelector: `metadata.name=${nodeName}` } : options),
  })
  const exec = createExec()
  const events = createEventRecorder({ ...tools, client }, { component, host: nodeName })
  const { syncPeriod, minSyncPeriod } = periodsOf(document)
  const health = new ProxyHealth(clock, 2 * (parseDuration(syncPeriod) ?? 0))
  const bound = parseIp(document.bindAddress)
  const proxy = createProxy(
    { informers, ...tools, exec, conntrack: createConntrack(exec), events, health },
    {
      nodeName,
      clusterCidr: document.clusterCIDR,
      serviceCidr: '',
      mode: document.mode,
      nodePortAddresses: document.nodePortAddresses ?? [],
      primaryAddress: bound && !isUnspecified(bound) ? document.bindAddress : undefined,
      usesNodeCidrs: document.detectLocalMode === 'NodeCIDR',
      masqueradeAll: (document.mode === 'nftables' ? document.nftables : document.iptables).masqueradeAll,
      minSyncMs: parseDuration(minSyncPeriod) ?? 0,
    },
  )
  const configChanged = fileChange(flags.configFile, clock)
  const failure = portFailure(document.bindAddressHardFail)
  const deps = { ...tools, onFailed: failure.onFailed }
  const pages = { mode: () => proxy.mode() || document.mode, configuration: document, flags: shown, profiling: document.enableProfiling }
  const ports = [
    ...(flags.servesHealth ? [createHealthPort(deps, health, addressOf(document.healthzBindAddress))] : []),
    ...(flags.servesMetrics ? [createMetricsPort(deps, pages, addressOf(document.metricsBindAddress))] : []),
  ]
  log.info('Starting the service proxy', { node: nodeName, mode: document.mode, family: isIpv6(document.bindAddress) ? 'IPv6' : 'IPv4' })
  await untilFailure([proxy, { name: 'informers', run: (stop) => informers.run(stop) }, ...ports, failure, configChanged], signal)
}

function addressOf(text: string) {
  const split = splitHostPort(text)
  if (!split) throw new UsageError([`"${text}" must be IP:port`])
  return { host: split.host, port: Number(split.port) }
}

/** Fails with the error of a port when a port that cannot be bound is to end the proxy. */
function portFailure(isFatal: boolean): Component & { readonly onFailed: ((error: Error) => void) | undefined } {
  let fail = (_error: Error) => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => {})
  return { name: 'ports', onFailed: isFatal ? fail : undefined, run: (signal) => Promise.race([failed, aborted(signal)]) }
}

/** Fails when the configuration file changes, so that its supervisor starts it again, as upstream. */
function fileChange(file: string, clock: ProcessTools['clock']): Component {
  return {
    name: 'configuration',
    run: (signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => resolve(), { once: true })
        const changed = () => reject(new Error("content of the proxy server's configuration file was updated"))
        if (file !== '') createConfigFile(path.resolve(file), clock).follow(changed, signal)
      }),
  }
}

/** Runs components until the signal aborts. @throws the first error of one of them, after the others have ended */
async function untilFailure(components: readonly Component[], signal: AbortSignal): Promise<void> {
  using scope = abortScope(signal)
  const failures: unknown[] = []
  const runs = components.map(async (one) => {
    try {
      await one.run(scope.signal)
    } catch (error) {
      failures.push(error)
      scope.abort(new Error('a component failed'))
    }
  })
  await Promise.all(runs)
  if (failures.length > 0) throw failures[0]
}
