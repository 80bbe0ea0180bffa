/**
 * `skiff join --control-plane` (L5): makes this machine a further control plane of a cluster. It takes the cluster's keys out of a sealed Secret, and runs API server,
 * controllers and scheduler over the cluster's etcd in the foreground; the latter two elect who works. Upstream: kubeadm join --control-plane (v1.36).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import os from 'node:os'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { BootstrapToken } from '#cli/bootstrapToken'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { type ClusterSettings, readClusterConfiguration } from '#cli/kubeadm/clusterConfiguration'
import { readDocuments } from '#cli/kubeadm/documents'
import { joinEndpoint } from '#cli/kubeadm/endpoint'
import { configMaps, secrets } from '#client/builtIn'
import { askAsToken } from '../join/asToken.ts'
import { ensureComponentCertificates, ensureControlPlane, readPlan, refuseForeignNode, refuseJoined, writeControlPlane } from '../join/controlPlaneFiles.ts'
import type { ControlPlaneFiles } from '../join/controlPlanePaths.ts'
import { type ControlPlanePlan, planControlPlane, refuseUnshared } from '../join/controlPlanePlan.ts'
import { discoverCluster } from '../join/discovery.ts'
import type { ControlPlaneJoin } from '../join/joinOptions.ts'
import { localAddress } from '../join/localAddress.ts'
import { done } from '../join/progressLines.ts'
import { certificatesSecret, etcdFiles, type SharedCertificates, unsealedEntries } from '../join/sharedCertificates.ts'
import type { TrustedCluster } from '../join/verifyClusterInfo.ts'
import { createApiProbe } from '../localCluster/apiProbe.ts'
import { ensurePki } from '../pki/pki.ts'
import { clusterConfigKey, clusterConfigName } from './joinAccess.ts'
import { ownProgram, type ProcessTools, processTools } from './processTools.ts'
import { superviseProcess } from './superviseProcess.ts'

const readyMs = 60_000
const renewEveryMs = 12 * 3_600_000

/** Everything before the components. @throws CommandError */
export async function joinControlPlane(join: ControlPlaneJoin, clock: Clock, signal: AbortSignal): Promise<void> {
  const { place, token, authorities, files, configDir } = join
  await refuseJoined(files, configDir)
  const cluster = await discoverCluster({ place, token, authorities, clock, signal })
  done(`The cluster at ${joinEndpoint(place)} is signed with token ${token.id}${authorities === 'any' ? '' : ', and its authority is the expected one'}`)
  await refuseForeignNode(files, cluster.ca)
  const settings = await clusterSettings(cluster, token, clock, signal)
  refuseUnshared(settings)
  const shared = await sharedCertificates(cluster, join, clock, signal)
  const { hostname: host, port } = new URL(cluster.server)
  const joinedThrough = { host: host.replace(/^\[|\]$/g, ''), port: Number(port || 443) }
  const server = { address: join.address ?? (await localAddress(place, clock, signal)), port: join.port, hostName: join.nodeName, joinedThrough }
  const etcdClient = { ca: shared.etcd.ca && etcdFiles.ca, cert: shared.etcd.cert && etcdFiles.cert, key: shared.etcd.key && etcdFiles.key }
  const plan = planControlPlane(settings, server, files, etcdClient)
  await writeControlPlane(files, shared, plan)
  done(`The certificate key opens the Secret ${certificatesSecret}; written: ${files.pki}, ${files.plan}`)
}

/** @throws CommandError unmetPrerequisite */
async function clusterSettings(cluster: TrustedCluster, token: BootstrapToken, clock: Clock, signal: AbortSignal): Promise<ClusterSettings> {
  const name = { namespace: 'kube-system', name: clusterConfigName }
  const found = await askAsToken(cluster, token, clock, (client) => client.of(configMaps).get(name, { signal }))
  const text = found?.data?.[clusterConfigKey]
  // The warnings are for people who wrote the file.
  const report = { warnings: [] }
  const fields = text === undefined ? undefined : readDocuments(text, [clusterConfigKey], report).get(clusterConfigKey)
  if (fields) return readClusterConfiguration(fields, report)
  throw new CommandError('unmetPrerequisite', `the cluster does not show its configuration (ConfigMap kube-system/${clusterConfigName})`, {
    hint: 'start it again with this version of Skiff, and use a token of skiff token create',
  })
}

/** @throws CommandError */
async function sharedCertificates(
  cluster: TrustedCluster,
  { token, certificateKey }: ControlPlaneJoin,
  clock: Clock,
  signal: AbortSignal,
): Promise<SharedCertificates> {
  const name = { namespace: 'kube-system', name: certificatesSecret }
  const found = await askAsToken(cluster, token, clock, (client) => client.of(secrets).get(name, { signal }))
  if (found) return unsealedEntries(found.data ?? {}, certificateKey, cluster.ca)
  throw new CommandError('notFound', `the cluster has no Secret ${certificatesSecret}: nothing was uploaded, or it has expired after two hours`, {
    hint: 'on a control plane: skiff certs upload',
  })
}

/** Runs what has joined until the signal aborts. @returns the exit code */
export async function runControlPlane(files: ControlPlaneFiles, verbosity: string, signal: AbortSignal): Promise<number> {
  const tools = processTools('join', { verbosity: Number(verbosity) })
  const plan = await readPlan(files)
  const ca = await ensureControlPlane(files, plan, tools.clock.now())
  using running = abortScope(signal)
  const stopped = running.signal
  const keep = (name: string, args: readonly string[]) => {
    const part = keepPart(name, [...args, `--v=${verbosity}`], tools, stopped)
    // Its failure ends the others, and is thrown when they have ended.
    part.catch((error: unknown) => running.abort(error))
    return part
  }
  const parts = [keep('apiserver', plan.apiServer)]
  const isReady = await untilReady(files, plan, tools.clock, stopped)
  if (isReady) {
    done(`This machine, ${os.hostname()}, is a control plane: its API is ready at port ${plan.port}`)
    parts.push(keep('controller-manager', plan.controllerManager), keep('scheduler', plan.scheduler))
    void renewRegularly(files, ca, tools, stopped)
  } else if (!stopped.aborted) {
    process.stderr.write(`error: the API server is not ready after ${readyMs / 1000} s: its log above says why\n`)
    running.abort(new Error('not ready'))
  }
  await Promise.allSettled(parts)
  await Promise.all(parts)
  return isReady ? exitCodes.ok : signal.aborted ? exitCodes.interrupted : exitCodes.timeout
}

/** One component as a child, which ends with this process. */
async function keepPart(name: string, args: readonly string[], tools: ProcessTools, signal: AbortSignal): Promise<void> {
  const [node = '', ...entry] = ownProgram()
  await superviseProcess<ChildProcess>(
    {
      start: async () => spawn(node, [...entry, 'part', name, ...args], { stdio: ['pipe', 'inherit', 'inherit'] }),
      onMissing: () => {},
      onStarted: async ({ pid }) => tools.log.info('A component runs', { component: name, pid }),
      async onEnded({ exitCode, signalCode }, isStopped) {
        if (isStopped) return
        if (exitCode === exitCodes.usage)
          throw new CommandError('usage', `skiff ${name} cannot use its flags: those of the cluster may name files of its first machine`)
        tools.log.warn('A component ended, starting it again', { component: name, ending: signalCode ?? exitCode })
      },
      async end(child, ending) {
        child.kill('SIGTERM')
        await ending
      },
    },
    tools,
    signal,
  )
}

/** False when it was not ready in time, or the signal aborted. */
async function untilReady({ pki }: ControlPlaneFiles, { port, servingNames }: ControlPlanePlan, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const { ca, admin } = await ensurePki(pki, servingNames, clock.now())
  const probe = createApiProbe(port, ca.cert, admin, clock)
  const deadline = clock.monotonicMs() + readyMs
  try {
    while (!signal.aborted && clock.monotonicMs() < deadline) {
      if ((await probe.get('/readyz'))?.status === 200) return true
      await clock.sleep(200, signal).catch(() => {})
    }
    return false
  } finally {
    probe.close()
  }
}

async function renewRegularly(
  files: ControlPlaneFiles,
  ca: Parameters<typeof ensureComponentCertificates>[1],
  { clock, log }: ProcessTools,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(renewEveryMs, signal).catch(() => {})
    if (!signal.aborted) await ensureComponentCertificates(files, ca, clock.now()).catch((error) => log.error(error, 'Certificates could not be renewed'))
  }
}
