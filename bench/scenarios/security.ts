/**
 * What security costs: the same requests of the same plain user against a server with everything switched on, and against one without. On: RBAC,
 * priority and fairness, an audit log of metadata in a file, a validating policy in CEL that looks at every ConfigMap, in addition to the admission plugins
 * that are always there. And what encryption at rest costs alone: Secrets under aesgcm, against Secrets as they are.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import type { LoadRequest, ServerAddress } from '../tools/http2Connection.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'
import { configMap, secret } from '../tools/objects.ts'
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
const secrets = `/api/v1/namespaces/${namespace}/secrets`

interface Cost {
  readonly perSecond: number[]
  /** Microseconds of the server's processor per request: what else the machine does counts less there than in how fast answers come. */
  readonly cpu: number[]
}
type Costs = Readonly<Record<Verb, Cost>>

export const security: Scenario = {
  name: 'security',
  about: `create and get with RBAC, fairness, audit and a policy, and of encrypted Secrets, against the same without; ${inFlight} in flight`,
  async run(context) {
    const tokens = path.join(context.dir, 'tokens.csv')
    writeFileSync(tokens, 'bench-token,bench-user,bench-uid\n', { mode: 0o600 })
    const policy = path.join(context.dir, 'audit-policy.yaml')
    writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n')
    const audit = [`audit-policy-file=${policy}`, `audit-log-path=${path.join(context.dir, 'audit.log')}`]
    const off = ['enable-priority-and-fairness=false', 'authorization-mode=AlwaysAllow']
    const token = `token-auth-file=${tokens}`
    const all = await withServers(context, [token, ...off], [token, ...audit], { requests: ofMaps, isSecured: true })
    const encryption = path.join(context.dir, 'encryption.json')
    writeFileSync(encryption, JSON.stringify(aesgcmForSecrets()), { mode: 0o600 })
    const encrypted = [token, ...off, `encryption-provider-config=${encryption}`]
    const atRest = await withServers(context, [token, ...off], encrypted, { requests: ofSecrets, isSecured: false })
    return [...measurements('', 'everything on', all), ...measurements('secret ', 'aesgcm', atRest)]
  },
}

function measurements(what: string, on: string, [without, within]: readonly [Costs, Costs]): Measurement[] {
  return verbs.flatMap((verb): Measurement[] => [
    { what: `${what}${verb}, without`, unit: '/s', values: without[verb].perSecond },
    { what: `${what}${verb}, ${on}`, unit: '/s', values: within[verb].perSecond },
    { what: `${what}${verb}, ratio`, unit: '', values: [median(within[verb].perSecond) / median(without[verb].perSecond)], target: { atLeast: leastRatio } },
    { what: `${what}${verb}, processor, without`, unit: 'us', values: without[verb].cpu },
    { what: `${what}${verb}, processor, ${on}`, unit: 'us', values: within[verb].cpu },
    { what: `${what}${verb}, processor, ratio`, unit: '', values: [median(without[verb].cpu) / median(within[verb].cpu)], target: { atLeast: leastRatio } },
  ])
}

function aesgcmForSecrets(): object {
  const keys = [{ name: 'bench', secret: randomBytes(32).toString('base64') }]
  const resources = [{ resources: ['secrets'], providers: [{ aesgcm: { keys } }] }]
  return { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', resources }
}

type Requests = Readonly<Record<Verb, (index: number) => LoadRequest>>

interface Comparison {
  readonly requests: Requests
  /** The second server gets a role and a policy. */
  readonly isSecured: boolean
}

/** Both run all the time and take turns, so that whatever else the machine does slows them alike. */
function withServers(
  context: ScenarioContext,
  off: readonly string[],
  on: readonly string[],
  { requests, isSecured }: Comparison,
): Promise<readonly [Costs, Costs]> {
  const flags = (more: readonly string[]) => ['--runtime', 'simulated', '--nodes', '1', ...more.flatMap((flag) => ['--kube-apiserver-arg', flag])]
  return withCluster(context.dir, 'plain', flags(off), (plain) =>
    withCluster(context.dir, 'secured', flags(on), async (secured) => {
      const users = [await prepared(plain.address, false), await prepared(secured.address, isSecured)] as const
      const costs: readonly [Costs, Costs] = [noCosts(), noCosts()]
      const pids = [plain.serverPid, secured.serverPid] as const
      for (const verb of verbs) {
        // The first one warms up.
        for (let repeat = 0; repeat <= repeats; repeat++) {
          context.signal.throwIfAborted()
          context.progress(`${verb}, ${repeat} of ${repeats}`)
          for (const side of [0, 1] as const) {
            const before = processorMs(pids[side])
            const { perSecond } = await users[side].loop(counts[verb], inFlight, (index) => requests[verb](repeat * counts[verb] + index))
            if (repeat === 0) continue
            costs[side][verb].perSecond.push(perSecond)
            costs[side][verb].cpu.push(((processorMs(pids[side]) - before) * 1000) / counts[verb])
          }
        }
      }
      for (const user of users) user.close()
      return costs
    }),
  )
}

const noCosts = (): Costs => ({ create: { perSecond: [], cpu: [] }, get: { perSecond: [], cpu: [] } })

/** User and system time so far, from ticks of 10 ms. */
function processorMs(pid: number): number {
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ').slice(11, 13).map(Number) ?? []
  return (user + system) * 10
}

/** A client of the plain user. Without a certificate: that would count before the token. */
async function prepared(address: ServerAddress, isSecured: boolean): Promise<LoadClient> {
  const administrator = await createLoadClient(address)
  try {
    await prepareNamespace(administrator, namespace)
    if (isSecured) await secure(administrator)
  } finally {
    administrator.close()
  }
  return createLoadClient({ host: address.host, port: address.port, ca: address.ca })
}

const headers = { authorization: 'Bearer bench-token' }
const named = (index: number) => `cm-${index}`
const requestsOn = (collection: string, object: (name: string) => Buffer): Requests => ({
  create: (index) => ({ method: 'POST', path: collection, body: object(named(index)), contentType: 'application/json', headers }),
  get: (index) => ({ method: 'GET', path: `${collection}/${named((index * 7919) % counts.create)}`, headers }),
})
const ofMaps = requestsOn(maps, (name) => configMap(namespace, name))
const ofSecrets = requestsOn(secrets, (name) => secret(namespace, name))

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
