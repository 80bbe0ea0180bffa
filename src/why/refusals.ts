/** Why a controller could not create an object (L2): the cause behind the API server's refusal, which stands in the controller's event or condition. */
import { refusalMessages } from '#api/helpers/refusalMessages'
import { type Cause, kubectl, skiffWhy } from './answer.ts'
import type { View } from './view.ts'

interface Rule {
  readonly message: RegExp
  cause(match: RegExpExecArray, namespace: string, view: View): Omit<Cause, 'evidence'> | Promise<Omit<Cause, 'evidence'>>
}

const rules: readonly Rule[] = [
  {
    message: refusalMessages.quotaExceeded,
    cause: ([, quota = '', requested, used, limited], namespace) => ({
      text: `ResourceQuota ${quota} has no room: requested ${requested}, used ${used}, limited ${limited}`,
      next: kubectl(namespace, 'describe', 'resourcequota', quota),
    }),
  },
  {
    message: refusalMessages.quotaUnspecified,
    cause: ([, quota = '', what], namespace) => ({
      text: `ResourceQuota ${quota} requires that every container sets ${what}`,
      next: kubectl(namespace, 'describe', 'resourcequota', quota),
    }),
  },
  {
    message: refusalMessages.podSecurity,
    cause: ([, level, details], namespace) => ({
      text: `namespace ${namespace} enforces PodSecurity "${level}", which its pods violate: ${details}`,
      next: kubectl(undefined, 'get', 'namespace', namespace, '--show-labels'),
    }),
  },
  {
    message: refusalMessages.webhookDenied,
    cause: async ([, webhook = '', why = ''], _, view) => ({
      text: `admission webhook ${webhook} denies it${why && `: ${why}`}`,
      ...nextFor(await configurationOf(webhook, view)),
    }),
  },
  {
    message: refusalMessages.webhookFailed,
    cause: async ([, webhook = '', why = ''], _, view) => ({
      text: `admission webhook ${webhook} is in the way: it does not answer, and its failurePolicy is Fail: ${why}`,
      ...nextFor(await configurationOf(webhook, view)),
    }),
  },
  {
    message: refusalMessages.policyDenied,
    cause: ([, policy = '', , why]) => ({
      text: `ValidatingAdmissionPolicy ${policy} refuses it: ${why}`,
      next: kubectl(undefined, 'get', 'validatingadmissionpolicy', policy, '-o', 'yaml'),
    }),
  },
  {
    message: refusalMessages.serviceAccount,
    cause: ([, , name = ''], namespace) => ({
      text: `its pods name ServiceAccount ${name}, which does not exist`,
      next: kubectl(namespace, 'create', 'serviceaccount', name),
    }),
  },
  {
    message: refusalMessages.priorityClass,
    cause: ([, name]) => ({ text: `its pods name PriorityClass ${name}, which does not exist`, next: kubectl(undefined, 'get', 'priorityclasses') }),
  },
  {
    message: refusalMessages.runtimeClass,
    cause: ([, name]) => ({ text: `its pods name RuntimeClass ${name}, which does not exist`, next: kubectl(undefined, 'get', 'runtimeclasses') }),
  },
  {
    message: /is forbidden: ((?:minimum|maximum) \S+ usage per .+|.*max limit to request ratio per .+)$/s,
    cause: ([, why], namespace) => ({ text: `a LimitRange refuses its pods: ${why}`, next: kubectl(namespace, 'describe', 'limitranges') }),
  },
  {
    message: refusalMessages.terminating,
    cause: (_, namespace) => ({ text: `namespace ${namespace} is being deleted: nothing can be created in it`, next: skiffWhy('ns', namespace) }),
  },
  {
    message: /"[^"]*" is invalid: (.+)$/s,
    cause: ([, why]) => ({ text: `the API server refuses the object that its template describes: ${why}` }),
  },
]

/** @param evidence the condition or event that has the message */
export async function refusalCause(message: string, evidence: string, namespace: string, view: View): Promise<Cause> {
  const next = kubectl(namespace, 'get', 'events', '--sort-by=.lastTimestamp')
  for (const rule of rules) {
    const match = rule.message.exec(message)
    if (match) return { next, ...(await rule.cause(match, namespace, view)), evidence }
  }
  return { text: `an object that it needs cannot be created: ${message.replace(/^Error creating: /, '')}`, evidence, next }
}

interface Configuration {
  readonly metadata: { readonly name?: string }
  readonly webhooks?: readonly { readonly name: string }[]
}

const kinds = ['validatingwebhookconfiguration', 'mutatingwebhookconfiguration'] as const

async function configurationOf(webhook: string, view: View): Promise<readonly [kind: string, name: string] | undefined> {
  for (const kind of kinds) {
    const found = (await view.list<Configuration>(`${kind}s`, undefined))?.find(({ webhooks = [] }) => webhooks.some(({ name }) => name === webhook))
    if (found) return [kind, found.metadata.name ?? '']
  }
  return undefined
}

function nextFor(configuration: readonly [string, string] | undefined): Pick<Cause, 'next'> {
  return configuration ? { next: skiffWhy(...configuration) } : {}
}
