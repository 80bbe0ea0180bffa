/** Objects that a tenant may create, and that cost a component far more than their size if it does all that they ask for at once. */

export interface Poison {
  readonly row: string
  readonly name: string
  /** Longest turn that is accepted, where the budget of 250 ms is not met yet. */
  readonly turnMs?: number
  /** Where to POST what, in order. */
  readonly objects: () => readonly (readonly [path: string, body: { readonly metadata: { readonly name: string } } & Record<string, unknown>])[]
}

const core = (resource: string) => `/api/v1/namespaces/tenant/${resource}`
const apps = (resource: string) => `/apis/apps/v1/namespaces/tenant/${resource}`
const batch = (resource: string) => `/apis/batch/v1/namespaces/tenant/${resource}`
const maxInt32 = 2 ** 31 - 1
const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))

const labels = { app: 'poison' }
const container = { name: 'c', image: 'i' }
// The other node is for the innocent.
const nodeSelector = { 'kubernetes.io/hostname': 'n1' }
const template = { metadata: { labels }, spec: { containers: [container], nodeSelector } }
const workload = (name: string, spec: object) => ({ metadata: { name }, spec: { selector: { matchLabels: labels }, template, ...spec } })
const pod = (name: string, spec: object) => ({ metadata: { name, labels }, spec: { containers: [container], ...spec } })
const job = (name: string, spec: object) => ({
  metadata: { name },
  spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } }, ...spec },
})
const doubling = [{ name: 'A0', value: 'x'.repeat(32) }, ...list(40, (i) => ({ name: `A${i + 1}`, value: `$(A${i})$(A${i})` }))]

export const poisons: readonly Poison[] = [
  {
    row: 'CTL-05',
    name: 'a StatefulSet of 2147483647 replicas',
    objects: () => [
      [
        apps('statefulsets'),
        workload('sts', { serviceName: 's', replicas: maxInt32, ordinals: { start: maxInt32 }, updateStrategy: { rollingUpdate: { partition: maxInt32 } } }),
      ],
      [apps('statefulsets'), workload('ordered', { serviceName: 's', replicas: maxInt32 })],
    ],
  },
  {
    row: 'KUB-18',
    name: 'a pod whose variables double forty times',
    objects: () => [
      [core('pods'), pod('doubling', { containers: [{ ...container, env: doubling }] })],
      [core('pods'), pod('words', { containers: [{ ...container, env: doubling.slice(0, 10), args: list(20_000, () => '$(A9)$(A9)') }] })],
    ],
  },
  {
    row: 'CTL-08',
    name: 'thirty CronJobs that never come, with a time zone',
    objects: () =>
      list(30, (i) => [
        batch('cronjobs'),
        { metadata: { name: `never-${i}` }, spec: { schedule: '0 0 31 2 *', timeZone: 'Europe/Berlin', jobTemplate: job('', {}) } },
      ]),
  },
]

/** More of them: what starts many pods, or costs the scheduler most. */
export const widePoisons: readonly Poison[] = [
  {
    row: 'CTL-04',
    name: 'a Deployment, ReplicaSet, ReplicationController, StatefulSet and Jobs of 2147483647 pods at once',
    objects: () => [
      [apps('deployments'), workload('wide', { replicas: maxInt32, strategy: { rollingUpdate: { maxSurge: '100%', maxUnavailable: maxInt32 } } })],
      [apps('replicasets'), workload('wide-set', { replicas: maxInt32, selector: { matchLabels: labels }, template })],
      [core('replicationcontrollers'), { metadata: { name: 'wide' }, spec: { replicas: maxInt32, selector: labels, template } }],
      [apps('statefulsets'), workload('wide', { serviceName: 's', replicas: maxInt32, podManagementPolicy: 'Parallel' })],
      [batch('jobs'), job('wide', { parallelism: maxInt32, completions: maxInt32 })],
      [batch('jobs'), job('wide-indexed', { parallelism: 100_000, completions: 100_000, completionMode: 'Indexed', backoffLimitPerIndex: 1 })],
      [
        '/apis/policy/v1/namespaces/tenant/poddisruptionbudgets',
        { metadata: { name: 'p' }, spec: { maxUnavailable: '1%', selector: { matchLabels: labels } } },
      ],
    ],
  },
  {
    row: 'SCH-10',
    name: 'eight pods of 4000 topology spread constraints',
    objects: () =>
      list(8, (i) => [
        core('pods'),
        pod(`spread-${i}`, {
          topologySpreadConstraints: list(4000, (n) => ({
            maxSkew: 1,
            topologyKey: `zone-${n}`,
            whenUnsatisfiable: n % 2 === 0 ? 'DoNotSchedule' : 'ScheduleAnyway',
            labelSelector: { matchLabels: { ...labels, n: `${n}` } },
          })),
        }),
      ]),
  },
]

/** Objects whose lists have as many entries as a request holds. */
export const longObjects: readonly Poison[] = longLists()

function longLists(): Poison[] {
  const many = 20_000
  const configMap = (name: string, metadata: object) => ({ metadata: { name, ...metadata }, data: {} })
  const podWith = (name: string, spec: object): Poison => ({ row: 'ARC-10', name: `a pod of many ${name}`, objects: () => [[core('pods'), pod('many', spec)]] })
  const uid = (i: number) => `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`
  const requirement = (i: number) => ({ key: `k${i}`, operator: 'In', values: [`${i}`] })
  const affinityTerm = (i: number) => ({ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { k: `${i}` } } })
  return [
    {
      row: 'ARC-10',
      name: 'an object of 60000 finalizers',
      objects: () => [[core('configmaps'), configMap('f', { finalizers: list(60_000, (i) => `a.b/f${i}`) })]],
    },
    {
      row: 'ARC-10',
      name: 'an object of many owners',
      objects: () => [
        [core('configmaps'), configMap('o', { ownerReferences: list(10_000, (i) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `n${i}`, uid: uid(i) })) })],
      ],
    },
    {
      row: 'ARC-10',
      name: 'an object of many labels',
      objects: () => [[core('configmaps'), configMap('l', { labels: Object.fromEntries(list(60_000, (i) => [`k${i}`, `${i}`])) })]],
    },
    podWith('tolerations', { tolerations: list(many, (i) => ({ key: `k${i}`, operator: 'Equal', value: 'v', effect: 'NoSchedule' })) }),
    podWith('host aliases', { hostAliases: list(many, (i) => ({ ip: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`, hostnames: ['h'] })) }),
    podWith('variables', { containers: [{ ...container, env: list(many, (i) => ({ name: `V${i}`, value: '$(V0)' })) }] }),
    podWith('ports', {
      containers: [{ ...container, ports: list(many / 2, (i) => ({ name: `p${i}`, containerPort: (i % 65_535) + 1, protocol: i < 65_535 ? 'TCP' : 'UDP' })) }],
    }),
    podWith('volumes', { volumes: list(many, (i) => ({ name: `v${i}`, emptyDir: {} })) }),
    podWith('init containers', { initContainers: list(5000, (i) => ({ name: `i${i}`, image: 'i' })) }),
    podWith('terms of node affinity', {
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: list(10_000, (i) => ({ matchExpressions: [requirement(i)] })) } },
      },
    }),
    podWith('terms of pod affinity', {
      affinity: {
        podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: list(6000, (i) => ({ weight: 1, podAffinityTerm: affinityTerm(i) })) },
        podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: list(3000, affinityTerm) },
      },
    }),
    podWith('scheduling gates', { schedulingGates: list(many, (i) => ({ name: `a.b/g${i}` })) }),
    {
      row: 'CTL-11',
      name: 'a Service of many ports',
      objects: () => [
        [core('services'), { metadata: { name: 's' }, spec: { selector: labels, ports: list(10_000, (i) => ({ name: `p${i}`, port: i + 1 })) } }],
        ...list(20, (i) => [core('pods'), pod(`p${i}`, {})] as const),
      ],
    },
  ]
}
