/** Advice about requests that do not fit the state of the cluster (L3): conflicts, missing objects, disruption budgets, full queues. */
import type { TracedRequest } from '#api/debug/traces'
import { shellWord } from '#base/shellWord'
import type { AdviceDeps, AdviceRule } from './adviceRule.ts'
import { inNamespace, objectText } from './adviceRule.ts'

export const stateAdvice: readonly AdviceRule[] = [
  {
    code: 409,
    message: /object is being deleted: /,
    lines: async (_, request, deps) => [
      `${objectText(request)} is being deleted; its name is free once it is gone${await finalizersOf(request, deps)}`,
      'repeat the request when it is gone',
    ],
  },
  {
    code: 409,
    message: /already exists/,
    lines: async (_, request, deps) => {
      const found = await current(request, deps)
      const since = found?.metadata.creationTimestamp
      return [`${objectText(request)} exists${since ? ` since ${since}` : ''}`, 'change it with kubectl apply, use another name, or delete it first']
    },
  },
  {
    code: 409,
    message: /the object has been modified/,
    lines: async (_, request, deps) => {
      const found = await current(request, deps)
      const last = [...(found?.metadata.managedFields ?? [])].sort((one, other) => (one.time ?? '').localeCompare(other.time ?? '')).at(-1)
      const by = last ? `, last by ${last.manager} at ${last.time}` : ''
      return [
        `${objectText(request)} was changed after it was read${found ? `: it is at resourceVersion ${found.metadata.resourceVersion} now${by}` : ''}`,
        'read it again, make the change on that, and send it; kubectl apply and patch need no resourceVersion',
      ]
    },
  },
  {
    code: 409,
    message: /^Apply failed with \d+ conflicts?: /,
    lines: (_, { causes = [] }) => [
      `other managers own these fields: ${causes.map(({ field, message }) => `${field} (${message.replace(/^conflict with /, '')})`).join(', ')}`,
      'leave them out, or take them over: kubectl apply --server-side --force-conflicts',
    ],
  },
  {
    code: 409,
    message: /Precondition failed: (UID|ResourceVersion) in precondition: (.*?), \S+ in object meta: (.*)$/,
    lines: ([, what, wanted, found], request) => [
      `the request is about ${what} ${wanted}; ${objectText(request)} has ${found || 'none'} now`,
      'read the object again, and use its value',
    ],
  },
  {
    code: 409,
    message: /the (UID|ResourceVersion) in the precondition \((.*?)\) does not match the \S+ in record \((.*?)\)/,
    lines: ([, what, wanted, found], request) => [
      `the request is about ${what} ${wanted}; ${objectText(request)} has ${found} now`,
      'read the object again, and use its value',
    ],
  },
  {
    code: 409,
    message: /is already assigned to node|^Operation cannot be fulfilled/,
    lines: (_, { message = '' }) => [`the state of the object forbids it: ${message.replace(/^Operation cannot be fulfilled on .*?": /, '')}`],
  },
  {
    code: 429,
    message: /disruption budget/,
    lines: (_, { causes = [], ...request }) => [
      causes[0]?.message ?? 'a PodDisruptionBudget allows no eviction now',
      'wait until more pods are ready, run more replicas, or lower the budget:',
      `kubectl get pdb${inNamespace(request)}`,
    ],
  },
  {
    code: 429,
    message: /.*/s,
    lines: (_, { refusedBy }) => [
      `too many requests at once${refusedBy ? `: ${refusedBy} has no free seat and no room in its queues` : ''}`,
      'send fewer in parallel, and wait as long as Retry-After says; or give this user a FlowSchema of its own:',
      'kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels',
    ],
  },
  {
    code: 404,
    message: /^namespaces "(.+)" not found$/,
    lines: ([, namespace]) => [`namespace ${namespace} does not exist`, `create it: kubectl create namespace ${shellWord(namespace ?? '')}`],
  },
  {
    code: 404,
    message: /the server could not find the requested resource/,
    lines: (_, { uri }) => [
      `no resource is served at ${uri.split('?')[0]}`,
      'compare the group and version with kubectl api-resources; a custom resource needs its CustomResourceDefinition',
    ],
  },
  {
    code: 404,
    message: /^(\S+) "(.+)" not found/,
    lines: ([, resource, name], request) => [
      `${resource} "${name}" does not exist`,
      `look with: kubectl get ${shellWord(resource ?? '')}${inNamespace(request)}`,
    ],
  },
  {
    code: 410,
    message: /.*/s,
    lines: () => ['the revision is compacted: list again without a resourceVersion or continue token', 'keep more history with: skiff up --history 1h'],
  },
]

function current({ object }: TracedRequest, { reader }: AdviceDeps) {
  return object?.name ? reader.get({ group: object.group, resource: object.resource }, object.namespace, object.name) : undefined
}

async function finalizersOf(request: TracedRequest, deps: AdviceDeps): Promise<string> {
  const { finalizers = [] } = (await current(request, deps))?.metadata ?? {}
  return finalizers.length > 0 ? `; it waits for the finalizers ${finalizers.join(', ')}` : ''
}
