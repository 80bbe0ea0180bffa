/**
 * What security costs: the same requests of the same plain user against a server with everything switched on, and against one without. On: RBAC,
 * priority and fairness, an audit log of metadata in a file, a validating policy in CEL that looks at every ConfigMap, beside the admission plugins
 * that are always there.
 */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import type { LoadRequest } from '../tools/http2Connection.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'
import { configMap } from '../tools/objects.ts'
import { median } from '../tools/statistics.ts'

const namespace = 'bench'
const inFlight = 64
const repeats = 5
const counts = { create: 2_000, get: 10_000 } as const
type Verb = keyof typeof counts
const verbs = ['create', 'get'] as const
const leastRatio = 0.75
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const admissionRegistration = '/apis/admissionregistration.k8s.io/v1'
const maps = `/api/v1/namespaces/${namespace}/configmaps`

type Rates = Readonly<Record<Verb, readonly number[]>>

export const security: Scenario = {
  name: 'security',
  about: `create and get with RBAC, fairness, audit and a policy, against the same without; ${inFlight} in flight`,
  async run(context) {
    const tokens = path.join(context.dir, 'tokens.csv')
    writeFileSync(tokens, 'bench-token,bench-user,bench-uid\n', { mode: 0o600 })
    const policy = path.join(context.dir, 'audit-policy.yaml')
    writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n')
    const audit = [`audit-policy-file=${policy}`, `audit-log-path=${path.join(context.dir, 'audit.log')}`]
    const off = ['enable-priority-and-fairness=false', 'authorization-mode=AlwaysAllow']
    const without = await measure(context, 'plain', [`token-auth-file=${tokens}`, ...off], false)
    const within = await measure(context, 'secured', [`token-auth-file=${tokens}`, ...audit], true)
    return verbs.flatMap((verb): Measurement[] => [
      { what: `${verb}, without`, unit: '/s', values: without[verb] },
      { what: `${verb}, everything on`, unit: '/s', values: within[verb] },
      { what: `${verb}, ratio`, unit: '', values: [median(within[verb]) / median(without[verb])], target: { atLeast: leastRatio } },
    ])
  },
}

function measure(context: ScenarioContext, name: string, apiServerFlags: readonly string[], isSecured: boolean): Promise<Rates> {
  const flags = ['--runtime', 'simulated', '--nodes', '1', ...apiServerFlags.flatMap((flag) => ['--kube-apiserver-arg', flag])]
  return withCluster(context.dir, name, flags, async ({ address }) => {
    const administrator = await createLoadClient(address)
    // Without a certificate: that would count before the token.
    const user = await createLoadClient({ host: address.host, port: address.port, ca: address.ca })
    try {
      await prepareNamespace(administrator, namespace)
      if (isSecured) await secure(administrator)
      const rates: Record<Verb, number[]> = { create: [], get: [] }
      for (const verb of verbs) {
        // The first one warms up.
        for (let repeat = 0; repeat <= repeats; repeat++) {
          context.signal.throwIfAborted()
          context.progress(`${name}: ${verb}, ${repeat} of ${repeats}`)
          const { perSecond } = await user.loop(counts[verb], inFlight, (index) => requests[verb](repeat * counts[verb] + index))
          if (repeat > 0) rates[verb].push(perSecond)
        }
      }
      return rates
    } finally {
      administrator.close()
      user.close()
    }
  })
}

const headers = { authorization: 'Bearer bench-token' }
const named = (index: number) => `cm-${index}`
const requests: Readonly<Record<Verb, (index: number) => LoadRequest>> = {
  create: (index) => ({ method: 'POST', path: maps, body: configMap(namespace, named(index)), contentType: 'application/json', headers }),
  get: (index) => ({ method: 'GET', path: `${maps}/${named((index * 7919) % counts.create)}`, headers }),
}

/** A role for the user, and a policy that looks at what they write. */
async function secure(administrator: LoadClient): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io'
  const metadata = { name: 'bench' }
  const rules = [{ verbs: ['create', 'get'], apiGroups: [''], resources: ['configmaps'] }]
  await administrator.ask('POST', `${rbac}/namespaces/${namespace}/roles`, { metadata, rules })
  await administrator.ask('POST', `${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata,
    roleRef: { apiGroup, kind: 'Role', name: 'bench' },
    subjects: [{ apiGroup, kind: 'User', name: 'bench-user' }],
  })
  const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['configmaps'] }]
  const validations = [{ expression: "has(object.data) && object.data.all(key, key.size() < 100 && !object.data[key].contains('secret'))" }]
  await administrator.ask('POST', `${admissionRegistration}/validatingadmissionpolicies`, {
    metadata,
    spec: { failurePolicy: 'Fail', matchConstraints: { resourceRules }, validations },
  })
  await administrator.ask('POST', `${admissionRegistration}/validatingadmissionpolicybindings`, {
    metadata,
    spec: { policyName: 'bench', validationActions: ['Deny'] },
  })
}
