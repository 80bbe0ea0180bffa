/** Advice about refusals of authorization (L3): the missing rule, the closest one that there is, and the command that gives it. */
import type { TracedRequest } from '#api/debug/traces'
import { shellWord } from '#base/shellWord'
import type { AuthorizationAttributes } from '../../authz/authorizer.ts'
import { authorize, nearestRules } from '../../authz/union.ts'
import type { AdviceDeps, AdviceRule } from './adviceRule.ts'

const ofResource =
  /^(?:\S+ "(.*?)" is forbidden: |\S+ is forbidden: )?User ".*?" cannot (\S+) resource "(.+?)" in API group "(.*?)" (?:in the namespace "(.*?)"|at the cluster scope)/s
const ofPath = /^forbidden: User ".*?" cannot (\S+) path "(.*?)"/s

export const accessAdvice: readonly AdviceRule[] = [
  {
    code: 403,
    message: ofResource,
    lines: ([, name = '', verb = '', whole = '', apiGroup = '', namespace = ''], request, deps) => {
      const [resource = '', subresource = ''] = whole.split('/', 2)
      const place = namespace === '' ? 'at the cluster scope' : `in namespace ${namespace}`
      const wanted = `${verb} on ${apiGroup === '' ? whole : `${resource}.${apiGroup}${subresource && `/${subresource}`}`} ${place}`
      const attributes = { isResourceRequest: true, path: '', verb, namespace, apiGroup, apiVersion: '', resource, subresource, name }
      return missingRule(wanted, { ...attributes, user: userOf(request) }, deps)
    },
  },
  {
    code: 403,
    message: ofPath,
    lines: ([, verb = '', path = ''], request, deps) => {
      const none = { namespace: '', apiGroup: '', apiVersion: '', resource: '', subresource: '', name: '' }
      return missingRule(`${verb} on the path ${path}`, { ...none, isResourceRequest: false, path, verb, user: userOf(request) }, deps)
    },
  },
]

function userOf({ user, as, groups }: TracedRequest) {
  return { name: as ?? user, groups }
}

async function missingRule(wanted: string, attributes: AuthorizationAttributes, { authorizers }: AdviceDeps): Promise<string[]> {
  const { user } = attributes
  const now = await authorize(authorizers, attributes)
  if (now.decision === 'allow')
    return [`user ${user.name} needed verb ${wanted}`, `it is granted by now${now.reason && ` (${now.reason})`}: repeat the request`]
  if (now.decision === 'deny') return [`needs verb ${wanted}: an authorizer denies it to user ${user.name}`, ...(now.reason ? [now.reason] : [])]
  const found = nearestRules(authorizers, attributes)
  if (!found) return [`needs verb ${wanted}: no authorizer grants it to user ${user.name}`, `asked: ${authorizers.map(({ name }) => name).join(', ')}`]
  const { nearest, bindings } = found
  return [
    `needs verb ${wanted}: no binding of user ${user.name} grants it`,
    nearest === undefined ? `none of the ${bindings} bindings of this user is about it` : `nearest: ${nearest}`,
    roleCommand(attributes),
  ]
}

/** The commands that give the missing rule and nothing else. */
function roleCommand({ user, verb, namespace, apiGroup, resource, subresource, isResourceRequest, path }: AuthorizationAttributes): string {
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user.name)
  const subject = shellWord(account ? `--serviceaccount=${account[1]}:${account[2]}` : `--user=${user.name}`)
  const what = shellWord(
    isResourceRequest ? `--resource=${resource}${apiGroup && `.${apiGroup}`}${subresource && `/${subresource}`}` : `--non-resource-url=${path}`,
  )
  const [role, binding, reference] =
    namespace === ''
      ? ['clusterrole NAME', 'clusterrolebinding NAME', '--clusterrole=NAME']
      : [`role NAME -n ${shellWord(namespace)}`, `rolebinding NAME -n ${shellWord(namespace)}`, '--role=NAME']
  return `allow with: kubectl create ${role} ${shellWord(`--verb=${verb}`)} ${what}; kubectl create ${binding} ${reference} ${subject}`
}
