/** CPU and memory of running containers changed without a restart. Upstream: test/e2e/common/node/pod_resize.go. */
import assert from 'node:assert/strict'
import type { Container, Pod, ResourceRequirements } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { pods } from '#client/builtIn'
import type { Behaviour, BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, busybox } from '../context.ts'

interface Sizes {
  readonly cpu?: string
  readonly memory?: string
}

const resources = (requests: Sizes, limits: Sizes): ResourceRequirements => ({ requests: { ...requests }, limits: { ...limits } })
const guaranteed = (cpu: string, memory: string) => resources({ cpu, memory }, { cpu, memory })

type Containers = Readonly<Record<string, ResourceRequirements>>

const bodyOf = (containers: Containers) => ({ spec: { containers: Object.entries(containers).map(([name, value]) => ({ name, resources: value })) } })

function settled(containers: Containers, generation: number) {
  return (pod: Frozen<Pod>) =>
    pod.status?.observedGeneration === generation &&
    !(pod.status.conditions ?? []).some(({ type }) => type === 'PodResizeInProgress' || type === 'PodResizePending') &&
    Object.entries(containers).every(([name, wanted]) => {
      const seen = pod.status?.containerStatuses?.find((status) => status.name === name)
      return seen?.restartCount === 0 && same(seen.resources, wanted)
    })
}

/** As quantities: 1000m is 1. */
function same(seen: Frozen<ResourceRequirements> | undefined, wanted: ResourceRequirements): boolean {
  const essence = (value: Frozen<ResourceRequirements> | undefined) =>
    [value?.requests, value?.limits].map((sizes) => [milliCpu(sizes?.cpu), sizes?.memory ?? ''].join()).join(';')
  return essence(seen) === essence(wanted)
}

const milliCpu = (text: string | undefined) => (text === undefined ? '' : text.endsWith('m') ? Number(text.slice(0, -1)) : Number(text) * 1000)

/** What the kernel holds the container to: its CPU quota per period in thousandths, and its bytes. */
async function kernelLimits({ execText }: BehaviourContext, pod: string, container: string): Promise<{ milli: number; bytes: number }> {
  const script = [
    'cd /sys/fs/cgroup',
    'if [ -f cpu.max ]; then cat cpu.max memory.max | tr "\\n" " "; else echo $(cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us memory/memory.limit_in_bytes); fi',
  ].join('; ')
  const [quota, period, bytes] = (await execText(pod, script, container)).trim().split(/\s+/).map(Number)
  return { milli: ((quota ?? 0) * 1000) / (period ?? 1), bytes: bytes ?? 0 }
}

const mebibytes = (text: string | undefined) => Number(text?.slice(0, -2)) * 2 ** 20

function resizes(name: string, before: Containers, after: Containers, how: 'patch' | 'replace' = 'patch'): Behaviour {
  return {
    name,
    run: async (context) => {
      const containers = Object.entries(before).map(([one, value]): Container => ({ name: one, image: busybox, command: ['sleep', '600'], resources: value }))
      const pod = await context.readyPod({ containers })
      const ref = { namespace: context.namespace, name: pod.metadata.name ?? '' }
      await context.waitForPod(ref.name, 'has its first size', settled(before, 1))
      if (how === 'patch') await context.client.of(pods).patch(ref, 'strategic', bodyOf(after), { subresource: 'resize' })
      else {
        const current = await context.client.of(pods).get(ref)
        const changed = current.spec.containers.map((one) => ({ ...one, resources: after[one.name] ?? one.resources }))
        await context.client.of(pods).updateSubresource<Pod>(ref, 'resize', { ...current, spec: { ...current.spec, containers: changed } })
      }
      const { metadata, spec } = await context.client.of(pods).get(ref)
      await context.waitForPod(ref.name, 'has its new size', settled({ ...before, ...after }, metadata.generation ?? 0))
      for (const { name: one, resources: value } of spec.containers) {
        const limits = await kernelLimits(context, ref.name, one)
        if (value?.limits?.cpu) assert.equal(limits.milli, milliCpu(value.limits.cpu), `CPU of ${one}`)
        if (value?.limits?.memory) assert.equal(limits.bytes, mebibytes(value.limits.memory), `memory of ${one}`)
      }
    },
  }
}

const three = (sizes: readonly (readonly [string, string])[]): Containers =>
  Object.fromEntries(sizes.map(([cpu, memory], index) => [`c${index + 1}`, guaranteed(cpu, memory)]))

export const resize: BehaviourGroup = {
  sig: 'sig-node',
  title: 'In-place resize',
  rows: ['KUB-22'],
  behaviours: [
    resizes(
      'burstable, 6 containers, mixed ops',
      {
        c1: resources({ cpu: '10m', memory: '20Mi' }, { cpu: '20m', memory: '40Mi' }),
        c2: resources({ cpu: '10m' }, { cpu: '20m' }),
        c3: resources({ memory: '20Mi' }, { memory: '40Mi' }),
        c4: resources({ cpu: '20m', memory: '30Mi' }, { cpu: '40m', memory: '60Mi' }),
        c5: resources({ cpu: '20m', memory: '20Mi' }, { cpu: '40m', memory: '40Mi' }),
        c6: resources({ cpu: '10m', memory: '20Mi' }, {}),
      },
      {
        c1: resources({ cpu: '15m', memory: '25Mi' }, { cpu: '25m', memory: '45Mi' }),
        c2: resources({ cpu: '15m' }, { cpu: '25m' }),
        c3: resources({ memory: '25Mi' }, { memory: '45Mi' }),
        c4: resources({ cpu: '15m', memory: '30Mi' }, { cpu: '30m', memory: '60Mi' }),
        c5: resources({ cpu: '20m', memory: '25Mi' }, { cpu: '40m', memory: '45Mi' }),
        c6: resources({ cpu: '15m', memory: '25Mi' }, {}),
      },
    ),
    resizes('equivalent values', { c1: guaranteed('10m', '64Mi') }, { c1: guaranteed('0.011', '64Mi') }),
    resizes(
      'guaranteed net increase',
      three([
        ['10m', '20Mi'],
        ['10m', '20Mi'],
        ['10m', '20Mi'],
      ]),
      three([
        ['20m', '30Mi'],
        ['15m', '25Mi'],
        ['12m', '20Mi'],
      ]),
    ),
    resizes(
      'guaranteed net decrease',
      three([
        ['20m', '40Mi'],
        ['20m', '40Mi'],
        ['20m', '40Mi'],
      ]),
      three([
        ['10m', '40Mi'],
        ['25m', '40Mi'],
        ['10m', '40Mi'],
      ]),
    ),
    resizes(
      'guaranteed mixed',
      three([
        ['20m', '40Mi'],
        ['20m', '40Mi'],
        ['20m', '40Mi'],
      ]),
      three([
        ['10m', '50Mi'],
        ['30m', '45Mi'],
        ['20m', '40Mi'],
      ]),
    ),
    resizes('replace endpoint equals pod', { c1: guaranteed('20m', '30Mi') }, { c1: guaranteed('30m', '40Mi') }, 'replace'),
  ],
}
