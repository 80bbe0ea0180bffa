/** Advice about refusals of admission plugins, webhooks and policies (L3). */
import { refusalMessages } from '#api/helpers/refusalMessages'
import type { KubeObject } from '#api/machinery/meta'
import { shellWord } from '#base/shellWord'
import type { AdviceDeps, AdviceRule } from './adviceRule.ts'
import { inNamespace } from './adviceRule.ts'

export const admissionAdvice: readonly AdviceRule[] = [
  {
    message: refusalMessages.quotaExceeded,
    lines: ([, quota, requested, used, limited], request) => [
      `ResourceQuota ${quota} has no room: requested ${requested}, used ${used}, limited ${limited}`,
      'delete objects that count, request less, or raise spec.hard:',
      `kubectl edit resourcequota ${shellWord(quota ?? '')}${inNamespace(request)}`,
    ],
  },
  {
    message: refusalMessages.quotaUnspecified,
    lines: ([, quota, what], request) => [
      `ResourceQuota ${quota} limits it, so every container must set ${what}`,
      `set resources in the pod, or make a LimitRange with defaults${inNamespace(request) && ` in namespace ${request.object?.namespace}`}`,
    ],
  },
  {
    message: refusalMessages.podSecurity,
    lines: ([, level, details], { object }) => [
      `namespace ${object?.namespace} enforces PodSecurity "${level}"; change in the pod:`,
      details ?? '',
      `or weaken it: kubectl label namespace ${shellWord(object?.namespace ?? '')} --overwrite pod-security.kubernetes.io/enforce=${weaker(level ?? '')}`,
    ],
  },
  {
    message: /(?:minimum|maximum) \S+ usage per (?:Container|Pod|PersistentVolumeClaim)|max limit to request ratio per/,
    lines: async (_, request, { reader }) => {
      const namespace = request.object?.namespace ?? ''
      const why = request.message?.replace(/^.*? is forbidden: /, '')
      const found = await reader.list({ group: '', resource: 'limitranges' }, namespace)
      const [first] = found ?? []
      if (!first) return [`a LimitRange of namespace ${namespace} bounds it: ${why}`, 'stay within']
      return [
        `LimitRange ${namesOf(found)} bounds it: ${why}`,
        `stay within, or: kubectl edit limitrange ${shellWord(first.metadata.name ?? '')} -n ${shellWord(namespace)}`,
      ]
    },
  },
  {
    message: refusalMessages.webhookDenied,
    lines: async ([, webhook = ''], _request, deps) => {
      const configuration = await configurationOf(webhook, deps)
      return [
        `webhook ${webhook}${configuration && ` of ${configuration}`} refuses the object`,
        'change the object as its message says, or the configuration of the webhook',
      ]
    },
  },
  {
    message: refusalMessages.webhookFailed,
    lines: async ([, webhook = '', why = ''], _request, deps) => {
      const configuration = await configurationOf(webhook, deps)
      if (configuration === '') return [`webhook ${webhook} does not answer: ${why}`, 'its failurePolicy is Fail: those who run it have to repair its service']
      return [
        `webhook ${webhook} of ${configuration} does not answer: ${why}`,
        'its failurePolicy is Fail: repair its service, or set Ignore:',
        `kubectl edit ${configuration}`,
      ]
    },
  },
  {
    message: refusalMessages.policyDenied,
    lines: ([, policy, binding, why]) => [
      `ValidatingAdmissionPolicy ${policy} refuses it: ${why}`,
      `change the object, the policy, or which objects its binding selects: kubectl edit validatingadmissionpolicybinding ${shellWord(binding ?? '')}`,
    ],
  },
  {
    message: /is attempting to grant RBAC permissions not currently held/,
    lines: (_, { user, as, object }) => [
      `user ${as ?? user} may grant only what they hold, and lacks the permissions that the message lists`,
      `give them these first, or the verb ${object?.resource.endsWith('bindings') ? 'bind' : 'escalate'} on the role`,
    ],
  },
  {
    message: refusalMessages.terminating,
    lines: ([, namespace]) => [
      `namespace ${namespace} is being deleted: nothing can be created in it`,
      `wait until it is gone, and create it again; why it stays: skiff why ${shellWord(`ns/${namespace}`)}`,
    ],
  },
  {
    message: /this namespace may not be deleted/,
    lines: (_, { object }) => [`the cluster needs namespace ${object?.name}: no role allows its deletion`, `delete the objects in it instead`],
  },
  {
    message: refusalMessages.serviceAccount,
    lines: ([, namespace, name]) => [
      `the pod names ServiceAccount ${namespace}/${name}, which does not exist`,
      `create it: kubectl create serviceaccount ${shellWord(name ?? '')} -n ${shellWord(namespace ?? '')}`,
    ],
  },
  {
    message: refusalMessages.priorityClass,
    lines: async ([, name], _request, { reader }) => [
      `the pod names PriorityClass ${name}, which does not exist`,
      ...thereAre(await reader.list({ group: 'scheduling.k8s.io', resource: 'priorityclasses' })),
      `create it: kubectl create priorityclass ${shellWord(name ?? '')} --value=1000`,
    ],
  },
  {
    message: refusalMessages.runtimeClass,
    lines: async ([, name], _request, { reader }) => [
      `the pod names RuntimeClass ${name}, which does not exist`,
      ...thereAre(await reader.list({ group: 'node.k8s.io', resource: 'runtimeclasses' })),
    ],
  },
  {
    message: /node "([^"]+)" (?:is not allowed|cannot|can only)|can only (?:access|create|delete)|not allowed to modify node/,
    lines: (_, { user, refusedBy }) => [
      `${refusedBy ?? 'NodeRestriction'} limits ${user} to its own Node and to the pods that run on it`,
      'make the request as another user',
    ],
  },
  {
    message: /Only bound persistent volume claims can be expanded|only dynamically provisioned pvc can be resized/,
    lines: () => ['a claim grows only if it is bound and its StorageClass has allowVolumeExpansion: true', 'kubectl get pvc,storageclass'],
  },
  {
    code: 403,
    message: /(?:spec|metadata|status)\.\S*: Forbidden: /,
    lines: (_, { message = '' }) => [`the field may not have this value: ${message.replace(/^.*?(?=(?:spec|metadata|status)\.)/s, '')}`],
  },
  {
    code: 403,
    message: /is forbidden: (.+)$/s,
    lines: ([, why], { refusedBy }) => (refusedBy ? [`admission plugin ${refusedBy} refuses it: ${why}`] : [`${why}`]),
  },
]

function weaker(level: string): string {
  return level.startsWith('restricted') ? 'baseline' : 'privileged'
}

type Named = readonly { readonly metadata: { readonly name?: string | undefined } }[]

function thereAre(objects: Named | undefined): string[] {
  return objects ? [`there are: ${namesOf(objects) || 'none'}`] : []
}

function namesOf(objects: Named = []): string {
  return objects
    .slice(0, 8)
    .map(({ metadata }) => metadata.name)
    .join(', ')
}

interface Configuration extends KubeObject {
  readonly webhooks?: readonly { readonly name: string }[]
}

/** Empty: the user may not read the configurations. */
async function configurationOf(webhook: string, { reader }: AdviceDeps): Promise<string> {
  let isHidden = false
  for (const kind of ['validatingwebhookconfiguration', 'mutatingwebhookconfiguration']) {
    const all = await reader.list<Configuration>({ group: 'admissionregistration.k8s.io', resource: `${kind}s` })
    const found = all?.find(({ webhooks = [] }) => webhooks.some(({ name }) => name === webhook))
    if (found) return `${kind} ${found.metadata.name}`
    isHidden ||= all === undefined
  }
  return isHidden ? '' : 'a configuration that is gone'
}
