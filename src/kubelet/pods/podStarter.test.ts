/** What happens before a sandbox is asked for: its names, its resolver, its users. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod, PodSpec } from '#api/gen/types/core.v1'
import { notFound } from '#api/machinery/status'
import type { PodSandboxConfig, RuntimeHandler } from '#grpc/criTypes'
import { GrpcError } from '#grpc/grpcError'
import { kubeletConfig } from '../core/config.ts'
import type { KubeletContext } from '../core/context.ts'
import { podLogDirectory } from '../core/podDirectory.ts'
import { startSandbox } from './podStarter.ts'
import { createUserNamespaces } from './userNamespaces.ts'

const podOf = (spec: Partial<PodSpec>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'shop', uid: 'u1' },
  spec: { containers: [{ name: 'main' }], ...spec },
  status: {},
})

interface Started {
  readonly events: readonly string[]
  readonly sandbox: PodSandboxConfig | undefined
  readonly error: string | undefined
  readonly hasLogs: boolean
}

/** Starts a pod's sandbox on a node in a temporary directory, or on one without a host. */
async function start(
  spec: Partial<PodSpec>,
  node: { readonly handlers?: readonly RuntimeHandler[]; readonly simulated?: true; readonly failure?: Error } = {},
): Promise<Started> {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-sandbox-'))
  const config = kubeletConfig({ nodeName: 'node-1', rootDirectory: '/kubelet', podLogsDirectory: '/logs' })
  const events: string[] = []
  let sandbox: PodSandboxConfig | undefined
  const runtime = {
    status: async () => ({ conditions: [], handlers: node.handlers ?? [] }),
    runPodSandbox: async (asked: PodSandboxConfig) => {
      if (node.failure) throw node.failure
      sandbox = asked
      return 's1'
    },
  }
  const host = node.simulated ? undefined : { path: (path: string) => join(directory, path) }
  const recorder = { event: (_about: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason}: ${message}`) }
  const client = { of: () => ({ get: () => Promise.reject(notFound({ group: 'node.k8s.io', resource: 'runtimeclasses' }, 'gone')) }) }
  const bare = { config, runtime, host, recorder, client } as unknown as KubeletContext
  const context = { ...bare, userNamespaces: await createUserNamespaces(bare) }
  const pod = podOf(spec)
  try {
    const error = await startSandbox(context, pod, 0, new AbortController().signal).then(
      () => undefined,
      (reason: Error) => reason.message,
    )
    const hasLogs = await stat(join(directory, podLogDirectory(config, pod))).then(
      () => true,
      () => false,
    )
    return { events, sandbox, error, hasLogs }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const noClusterDns = 'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.'

test('KUB-20 a pod starts with a truncated resolver configuration, and an event reports it', async () => {
  const { events, sandbox, hasLogs } = await start({})
  assert.deepEqual(events, [`Warning MissingClusterDNS: pod: "web-0_shop(u1)". ${noClusterDns}`])
  assert.deepEqual(sandbox?.dnsConfig, { servers: ['127.0.0.1'], searches: ['.'], options: [] })
  assert.ok(hasLogs)
})

test('CRI-01 a failed start of a sandbox is reported with upstream’s reason and message', async () => {
  const failed = await start({ dnsPolicy: 'Default' }, { failure: new GrpcError('DEADLINE_EXCEEDED', 'too slow') })
  const text = 'rpc error: code = DeadlineExceeded desc = too slow'
  assert.deepEqual(failed.events, [`Warning FailedCreatePodSandBox: Failed to create pod sandbox: ${text}`])
  assert.equal(failed.error, `Failed to create sandbox for pod "web-0_shop(u1)": ${text}`)
  const unknown = await start({ dnsPolicy: 'Default', runtimeClassName: 'gone' })
  assert.deepEqual(unknown.events, ['Warning FailedCreatePodSandBox: Failed to create pod sandbox: runtimeclass.node.k8s.io "gone" not found'])
})

test('KUB-19 the pause process has the runtime’s profile whatever the pod’s is, and the pod’s label and groups', async () => {
  const seLinuxOptions = { level: 's0:c1,c2' }
  const seccompProfile = { type: 'Localhost', localhostProfile: 'tight.json' }
  const { sandbox } = await start({ dnsPolicy: 'Default', securityContext: { seLinuxOptions, seccompProfile, supplementalGroupsPolicy: 'Strict' } })
  const told = sandbox?.linux.securityContext
  assert.deepEqual([told?.seccomp, told?.selinuxOptions?.level, told?.supplementalGroupsPolicy], [{ profileType: 'RuntimeDefault' }, 's0:c1,c2', 1])
})

test('KUB-26 a simulated pod has no resolver configuration and no events about it', async () => {
  const { events, sandbox } = await start({}, { simulated: true })
  assert.deepEqual([events, sandbox?.metadata.name], [[], 'web-0'])
})

test('KUB-20 a host name longer than the kernel allows stops the pod from starting, with a message', async () => {
  const spec = { dnsPolicy: 'Default', hostname: 'h'.repeat(60), subdomain: 'sub', setHostnameAsFQDN: true }
  const { events, sandbox, error } = await start(spec)
  assert.equal(sandbox, undefined)
  assert.match(error ?? '', /^Failed to create sandbox for pod "web-0_shop\(u1\)": failed to construct FQDN /)
  assert.match(
    events.join(),
    /^Warning FailedCreatePodSandBox: Failed to create pod sandbox: failed to construct FQDN .* \(64 characters is the max, \d+ characters requested\)$/,
  )
})

test('KUB-19 a pod with a user namespace starts on a runtime that supports it, and fails on one that does not', async () => {
  const spec = { dnsPolicy: 'Default', hostUsers: false }
  const able = await start(spec, { handlers: [{ name: '', features: { recursiveReadOnlyMounts: false, userNamespaces: true } }] })
  const mapping = [{ hostId: 65_536, containerId: 0, length: 65_536 }]
  assert.deepEqual(able.sandbox?.linux.securityContext.namespaceOptions.usernsOptions, { mode: 'POD', uids: mapping, gids: mapping })
  const unable = await start(spec)
  assert.equal(unable.sandbox, undefined)
  assert.match(
    unable.events.join(),
    /^Warning FailedCreatePodSandBox: Failed to create pod sandbox: can't set `spec\.hostUsers: false`, runtime does not support/,
  )
})
