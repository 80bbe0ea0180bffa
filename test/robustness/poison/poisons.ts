/** Small objects that a tenant may create, and that are large to whoever does what they ask for at once. */

export interface Poison {
  readonly row: string
  readonly name: string
  /** Where to POST what, in order. */
  readonly objects: () => readonly (readonly [path: string, body: { readonly metadata: { readonly name: string } } & Record<string, unknown>])[]
  /** Whether the API takes it. Default true. */
  readonly accepted?: boolean | undefined
  /** The longest turn that the event loop may take meanwhile. Default 250 ms. */
  readonly turnMs?: number | undefined
}

const core = (resource: string) => `/api/v1/namespaces/tenant/${resource}`
const apps = (resource: string) => `/apis/apps/v1/namespaces/tenant/${resource}`
const batch = (resource: string) => `/apis/batch/v1/namespaces/tenant/${resource}`
const maxInt32 = 2 ** 31 - 1
const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))

const labels = { app: 'poison' }
const container = { name: 'c', image: 'i' }
const template = { metadata: { labels }, spec: { containers: [container] } }
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
  {
    row: 'CTL-07',
    name: 'an indexed Job of 100000 completions at once',
    objects: () => [[batch('jobs'), job('wide', { completions: 100_000, parallelism: 100_000, completionMode: 'Indexed', suspend: true })]],
  },
]
