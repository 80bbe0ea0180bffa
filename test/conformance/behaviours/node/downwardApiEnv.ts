/** The downward API in environment variables. Upstream: test/e2e/common/node/downwardapi.go. */
import assert from 'node:assert/strict'
import type { EnvVar } from '#api/gen/types/core.v1'
import { nodes, pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext, PodInput } from '../context.ts'

const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } })
const resource = (name: string, of: string): EnvVar => ({ name, valueFrom: { resourceFieldRef: { resource: of } } })

/** The variables of the pod, as `env` prints them, and the pod as it was at its end. */
async function variables(context: BehaviourContext, input: PodInput) {
  const pod = await context.runPod({ script: 'env', ...input })
  const lines = (await context.logs(pod.metadata.name ?? '')).split('\n')
  return { pod, env: Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])) }
}

const limitsAndRequests = [
  resource('CPU_LIMIT', 'limits.cpu'),
  resource('MEMORY_LIMIT', 'limits.memory'),
  resource('CPU_REQUEST', 'requests.cpu'),
  resource('MEMORY_REQUEST', 'requests.memory'),
]

export const downwardApiEnv: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Downward API env',
  rows: ['KUB-18'],
  behaviours: [
    {
      name: 'name, namespace, IP',
      run: async (context) => {
        const env = [field('NAME', 'metadata.name'), field('NAMESPACE', 'metadata.namespace'), field('IP', 'status.podIP')]
        const { pod, env: seen } = await variables(context, { container: { env } })
        assert.equal(seen.NAME, pod.metadata.name)
        assert.equal(seen.NAMESPACE, context.namespace)
        assert.match(seen.IP ?? '', /^\d+\.\d+\.\d+\.\d+$/)
      },
    },
    {
      name: 'hostIP',
      run: async (context) => {
        const { pod, env } = await variables(context, { container: { env: [field('HOST', 'status.hostIP')] } })
        const node = await context.get(nodes, pod.spec.nodeName ?? '')
        assert.equal(env.HOST, node.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address)
      },
    },
    {
      name: 'hostIPs',
      run: async (context) => {
        const { pod, env } = await variables(context, { container: { env: [field('HOSTS', 'status.hostIPs')] } })
        const { status } = await context.get(pods, pod.metadata.name ?? '')
        assert.equal(env.HOSTS, status?.hostIPs?.map(({ ip }) => ip).join(','))
        assert.equal(status?.hostIPs?.[0]?.ip, status?.hostIP)
      },
    },
    {
      name: 'pod UID',
      run: async (context) => {
        const { pod, env } = await variables(context, { container: { env: [field('UID', 'metadata.uid')] } })
        assert.equal(env.UID, pod.metadata.uid)
      },
    },
    {
      name: 'limits/requests',
      run: async (context) => {
        const resources = { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '1250m', memory: '64Mi' } }
        const { env } = await variables(context, { container: { env: limitsAndRequests, resources } })
        const seen = [env.CPU_LIMIT, env.MEMORY_LIMIT, env.CPU_REQUEST, env.MEMORY_REQUEST]
        assert.deepEqual(seen, ['2', '67108864', '1', '33554432'])
      },
    },
    {
      name: 'defaults from node allocatable',
      run: async (context) => {
        const { pod, env } = await variables(context, { container: { env: limitsAndRequests.slice(0, 2) } })
        const { status } = await context.get(nodes, pod.spec.nodeName ?? '')
        assert.equal(env.CPU_LIMIT, status?.allocatable?.cpu)
        assert.equal(
          Number(env.MEMORY_LIMIT),
          Number(/^\d+/.exec(status?.allocatable?.memory ?? '')?.[0]) * (status?.allocatable?.memory?.endsWith('Ki') ? 1024 : 1),
        )
      },
    },
  ],
}
