/**
 * Authorizers configured by flags and by file (AUZ-05, AUZ-06, AUZ-08): modes, ABAC policies, webhooks over TLS with their answers, match
 * conditions, caches and failures, and a configuration that changes.
 */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Logger, noLog } from '#base/log'
import { createPrometheusMetrics } from '#main/prometheus'
import type { TestApiServer } from '#testing/apiServer'
import { type CannedServer, startCannedServer } from '../../support/cannedServer.ts'
import { httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const authority = ssl.authority('webhooks')
let webhook: CannedServer
before(async () => {
  webhook = await startCannedServer(ssl.sign(authority, { subject: '/CN=webhook', usage: 'serverAuth', names: 'IP:127.0.0.1' }))
})
after(async () => {
  await webhook.close()
  ssl.remove()
})

const kubeconfig = (path = '/ask') =>
  ssl.file(
    `webhook${path.replaceAll('/', '-')}.yaml`,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'w', cluster: { server: `${webhook.url}${path}`, 'certificate-authority-data': Buffer.from(authority.cert).toString('base64') } }],
      users: [{ name: 'u', user: { token: 'credential' } }],
      contexts: [{ name: 'c', context: { cluster: 'w', user: 'u' } }],
      'current-context': 'c',
    }),
  )

interface Status {
  readonly allowed: boolean
  readonly denied?: boolean
  readonly reason?: string
  readonly evaluationError?: string
}

async function review(api: TestApiServer, spec: object): Promise<Status> {
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
  const transport = api.server.transport({ name: 'admin', groups: ['system:masters'] }, 'test')
  return ((await transport.request({ method: 'POST', path: '/apis/authorization.k8s.io/v1/subjectaccessreviews', body })).body as { status: Status }).status
}

const may = (api: TestApiServer, user: string, verb: string, resource: string, more: object = {}) =>
  review(api, { user, groups: ['system:authenticated'], resourceAttributes: { verb, resource, namespace: 'a', ...more } })

const asked = async () => (await webhook.received()).map(({ body }) => JSON.parse(body) as { apiVersion: string; spec: Record<string, unknown> })
const answer = (status: object, apiVersion = 'authorization.k8s.io/v1') => ({ text: JSON.stringify({ apiVersion, kind: 'SubjectAccessReview', status }) })

describe('authorization modes', () => {
  const policy = ssl.file('policy.jsonl', '{"user":"alice","resource":"pods","readonly":true}\n')
  const cases: readonly [modes: string, flags: readonly string[], verb: string, want: Status][] = [
    ['AlwaysAllow', [], 'delete', { allowed: true }],
    ['AlwaysDeny', [], 'get', { allowed: false, reason: 'Everything is forbidden.' }],
    ['AlwaysDeny,AlwaysAllow', [], 'get', { allowed: true }],
    ['ABAC', [`--authorization-policy-file=${policy}`], 'get', { allowed: true }],
    ['ABAC', [`--authorization-policy-file=${policy}`], 'delete', { allowed: false, reason: 'No policy matched.' }],
    ['ABAC,AlwaysDeny', [`--authorization-policy-file=${policy}`], 'delete', { allowed: false, reason: 'No policy matched.\nEverything is forbidden.' }],
    ['RBAC', [], 'get', { allowed: false }],
  ]
  for (const [modes, flags, verb, want] of cases) {
    test(`AUZ-08 mode ${modes} answers ${verb}`, async () => {
      const api = await startServerWithFlags([`--authorization-mode=${modes}`, ...flags])
      try {
        assert.deepEqual(await may(api, 'alice', verb, 'pods'), want)
      } finally {
        await api.close()
      }
    })
  }

  const faults: readonly [flags: readonly string[], want: string][] = [
    [['--authorization-mode=Magic'], 'authorization-mode "Magic" is not a valid mode'],
    [['--authorization-mode=RBAC,RBAC'], 'authorization-mode ["RBAC" "RBAC"] has mode specified more than once'],
    [['--authorization-mode=ABAC'], "authorization-mode ABAC's authorization policy file not passed"],
    [['--authorization-mode=Webhook'], "authorization-mode Webhook's authorization config file not passed"],
    [['--authorization-policy-file=x'], 'cannot specify --authorization-policy-file without mode ABAC'],
    [['--authorization-webhook-config-file=x'], 'cannot specify --authorization-webhook-config-file without mode Webhook'],
    [
      ['--authorization-config=x', '--authorization-mode=RBAC'],
      '--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined',
    ],
  ]
  for (const [flags, want] of faults) test(`AUZ-08 a server refuses ${flags.join(' ')}`, () => assert.rejects(startServerWithFlags(flags), { message: want }))
})

for (const version of ['v1', 'v1beta1']) {
  describe(`a webhook of ${version}`, () => {
    let api: TestApiServer
    before(async () => {
      const flags = ['--authorization-mode=Webhook,RBAC', `--authorization-webhook-config-file=${kubeconfig()}`, `--authorization-webhook-version=${version}`]
      api = await startServerWithFlags(flags)
    })
    after(() => api.close())
    beforeEach(() => webhook.received())

    test(`AUZ-06 a webhook of ${version} gets the whole question, and allows`, async () => {
      await webhook.answer({ '/ask': answer({ allowed: true, reason: 'a friend' }, `authorization.k8s.io/${version}`) })
      const selectors = {
        fieldSelector: { rawSelector: 'spec.nodeName=n,status.phase!=Running' },
        labelSelector: { requirements: [{ key: 'app', operator: 'In', values: ['x', 'y'] }] },
      }
      const spec = { user: 'jane', uid: '7', groups: ['dev'], extra: { team: ['a'] } }
      const attributes = { verb: 'list', namespace: 'a', group: 'apps', version: 'v1', resource: 'deployments', subresource: 'scale', name: 'web' }
      assert.deepEqual(await review(api, { ...spec, resourceAttributes: { ...attributes, ...selectors } }), { allowed: true, reason: 'a friend' })
      const [question] = await asked()
      const { groups, ...rest } = spec
      assert.deepEqual(question, {
        kind: 'SubjectAccessReview',
        apiVersion: `authorization.k8s.io/${version}`,
        metadata: {},
        spec: {
          ...rest,
          [version === 'v1' ? 'groups' : 'group']: groups,
          resourceAttributes: {
            ...attributes,
            fieldSelector: {
              requirements: [
                { key: 'spec.nodeName', operator: 'In', values: ['n'] },
                { key: 'status.phase', operator: 'NotIn', values: ['Running'] },
              ],
            },
            labelSelector: { requirements: [{ key: 'app', operator: 'In', values: ['x', 'y'] }] },
          },
        },
        status: { allowed: false },
      })
    })
  })
}

describe('answers of a webhook', () => {
  let api: TestApiServer
  const metrics = createPrometheusMetrics()
  before(async () => {
    const flags = ['--authorization-mode=Webhook,AlwaysDeny', `--authorization-webhook-config-file=${kubeconfig()}`, '--authorization-webhook-version=v1']
    api = await startServerWithFlags(flags, { metrics })
  })
  after(() => api.close())
  beforeEach(() => webhook.received())

  const everything = 'Everything is forbidden.'
  const cases: readonly [name: string, status: object, want: Status][] = [
    ['no opinion', { allowed: false, reason: 'who knows' }, { allowed: false, reason: `who knows\n${everything}` }],
    ['denied', { allowed: false, denied: true, reason: 'no' }, { allowed: false, denied: true, reason: 'no' }],
    [
      'allowed and denied at once',
      { allowed: true, denied: true },
      { allowed: false, denied: true, evaluationError: 'webhook subject access review returned both allow and deny response' },
    ],
  ]
  for (const [name, status, want] of cases) {
    test(`AUZ-06 a webhook answers ${name}`, async () => {
      await webhook.answer({ '/ask': answer(status) })
      assert.deepEqual(await may(api, `user of ${name}`, 'get', 'pods'), want)
    })
  }

  test('AUZ-06 answers of a webhook hold for a while, by all of the question; those of long questions do not', async () => {
    await webhook.answer({ '/ask': answer({ allowed: true }) })
    const long = 'x'.repeat(10_000)
    for (const user of ['anna', 'anna', 'bert']) await may(api, user, 'get', 'pods')
    for (let i = 0; i < 2; i++) await may(api, 'anna', 'get', 'pods', { name: long })
    assert.deepEqual(
      (await asked()).map(({ spec }) => spec.user),
      ['anna', 'bert', 'anna', 'anna'],
    )
  })

  test('AUZ-06 an invalid answer of a webhook counts as no opinion, and is in evaluationError', async () => {
    await webhook.answer({ '/ask': { text: '{"kind":"Pod","apiVersion":"v1"}' } })
    const { evaluationError, ...rest } = await may(api, 'carl', 'get', 'pods')
    assert.deepEqual(rest, { allowed: false, reason: everything })
    assert.match(evaluationError ?? '', /instead of a SubjectAccessReview/)
  })

  test('AUZ-06 a request fails with 500, not 403, when no authorizer could decide', async () => {
    await webhook.answer({ '/ask': { status: 400, text: 'no' } })
    const transport = api.server.transport({ name: 'dora', groups: ['system:authenticated'] }, 'test')
    await assert.rejects(transport.request({ method: 'GET', path: '/api/v1/pods' }), { code: 500 })
  })

  test('AUZ-06 metrics count decisions and evaluations of a webhook', () => {
    const text = metrics.render()
    for (const line of [
      /^apiserver_authorization_decisions_total\{type="Webhook",name="default",decision="allowed"\} \d+$/m,
      /^apiserver_authorization_decisions_total\{type="Webhook",name="default",decision="denied"\} 2$/m,
      /^apiserver_authorization_webhook_evaluations_total\{name="default",result="success"\} \d+$/m,
      /^apiserver_authorization_webhook_evaluations_fail_open_total\{name="default",result="error"\} [1-9]\d*$/m,
      /^authorization_attempts_total\{result="error"\} 1$/m,
    ])
      assert.match(text, line)
  })
})

describe('AUN-01 requests without a credential under AlwaysAllow', () => {
  const anonymousByFile = ssl.file('anonymous.yaml', 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n')
  const list = 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: AlwaysAllow, name: alwaysallow}]\n'
  const authorizersByFile = ssl.file('always.yaml', list)
  const cases: readonly [name: string, flags: readonly string[], status: number, isLogged: boolean][] = [
    ['are refused, the mode is AlwaysAllow', ['--authorization-mode=AlwaysAllow'], 401, true],
    ['are refused, AlwaysAllow is one of the modes', ['--authorization-mode=RBAC,AlwaysAllow'], 401, true],
    ['are refused, the flag --anonymous-auth allows them', ['--authorization-mode=AlwaysAllow', '--anonymous-auth=true'], 401, true],
    ['are refused without a log line, the flag forbids them anyway', ['--authorization-mode=AlwaysAllow', '--anonymous-auth=false'], 401, false],
    // Upstream resets the flag alone, and looks at the modes of the flag alone.
    ['pass, a configuration file allows them', ['--authorization-mode=AlwaysAllow', `--authentication-config=${anonymousByFile}`], 200, false],
    ['pass, a configuration file names AlwaysAllow', [`--authorization-config=${authorizersByFile}`], 200, false],
    ['are forbidden, AlwaysAllow is not among the modes', ['--authorization-mode=RBAC'], 403, false],
  ]
  for (const [name, flags, status, isLogged] of cases) {
    test(`AUN-01 requests without a credential ${name}`, async () => {
      const lines: string[] = []
      const api = await startServerWithFlags(flags, { log: loggerTo(lines) })
      try {
        const server = await api.listen()
        const secrets = '/api/v1/namespaces/kube-system/secrets'
        const basic = `Basic ${Buffer.from('admin:wrong').toString('base64')}`
        assert.equal((await httpsCall(server, secrets)).status, status)
        assert.equal((await httpsCall(server, secrets, { headers: { authorization: basic } })).status, status)
        assert.equal(lines.filter((line) => line.startsWith('Anonymous authentication is off')).length, isLogged ? 1 : 0)
      } finally {
        await api.close()
      }
    })
  }
})

test('AUN-01 a server does not start, if both --anonymous-auth and the configuration file set anonymous authentication', async () => {
  const file = ssl.file('anonymous.yaml', 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: false}\n')
  for (const flag of ['--anonymous-auth=true', '--anonymous-auth=false', '--anonymous-auth']) {
    await assert.rejects(
      startServerWithFlags([`--authentication-config=${file}`, flag]),
      /--anonymous-auth flag cannot be set when anonymous field is configured/,
    )
  }
})

/** Keeps the messages of warnings. */
function loggerTo(lines: string[]): Logger {
  const log: Logger = { ...noLog, warn: (message) => void lines.push(message), with: () => log, v: () => log }
  return log
}

describe('a configuration file of authorization', () => {
  const file = ssl.file('authorization.yaml', '')
  const webhookOf = (more: object = {}) => ({
    timeout: '3s',
    subjectAccessReviewVersion: 'v1',
    matchConditionSubjectAccessReviewVersion: 'v1',
    failurePolicy: 'Deny',
    connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: kubeconfig() },
    ...more,
  })
  const configuration = (authorizers: readonly object[], version = 'v1') =>
    JSON.stringify({ apiVersion: `apiserver.config.k8s.io/${version}`, kind: 'AuthorizationConfiguration', authorizers })
  const start = (content: string, options = {}) => {
    writeFileSync(file, content)
    return startServerWithFlags([`--authorization-config=${file}`], options)
  }
  after(() => rmSync(file))

  const conditions = [
    { expression: "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'a'" },
    { expression: "!('system:masters' in request.groups)" },
    { expression: "request.resourceAttributes.?fieldSelector.?requirements.orValue([]).all(r, r.key != 'secret')" },
  ]
  const deny = { type: 'AlwaysDeny', name: 'alwaysdeny' }

  test('AUZ-06 match conditions decide for which requests the webhook is called, and a false one wins over an error', async () => {
    await webhook.answer({ '/ask': answer({ allowed: true }) })
    const api = await start(configuration([{ type: 'Webhook', name: 'first', webhook: webhookOf({ matchConditions: conditions }) }, deny]))
    try {
      await webhook.received()
      assert.deepEqual(await may(api, 'eve', 'get', 'pods'), { allowed: true })
      assert.deepEqual(await may(api, 'eve', 'get', 'pods', { namespace: 'b' }), { allowed: false, reason: 'Everything is forbidden.' })
      assert.deepEqual(await may(api, 'eve', 'list', 'pods', { fieldSelector: { rawSelector: 'secret=1' } }), {
        allowed: false,
        reason: 'Everything is forbidden.',
      })
      assert.equal((await asked()).length, 1)
    } finally {
      await api.close()
    }
  })

  test('AUZ-06 an error of a match condition is handled by the failure policy', async () => {
    const matchConditions = [{ expression: "request.resourceAttributes.namespace == 'a'" }]
    const api = await start(configuration([{ type: 'Webhook', name: 'first', webhook: webhookOf({ matchConditions }) }]))
    try {
      const status = await review(api, { user: 'eve', nonResourceAttributes: { path: '/x', verb: 'get' } })
      assert.deepEqual({ ...status, evaluationError: '' }, { allowed: false, denied: true, evaluationError: '' })
      assert.match(status.evaluationError ?? '', /^cel evaluation error: expression 'request.resourceAttributes.namespace == 'a'' resulted in error: /)
    } finally {
      await api.close()
    }
  })

  test('AUZ-06 an unreachable webhook denies with failurePolicy Deny', async () => {
    await webhook.answer({})
    const api = await start(configuration([{ type: 'Webhook', name: 'first', webhook: webhookOf() }]))
    try {
      const { allowed, denied } = await may(api, 'eve', 'get', 'pods')
      assert.deepEqual({ allowed, denied }, { allowed: false, denied: true })
    } finally {
      await api.close()
    }
  })

  test('AUZ-06 a new list of authorizers takes over; a bad one changes nothing', async () => {
    const metrics = createPrometheusMetrics()
    const api = await start(configuration([deny], 'v1beta1'), { metrics })
    const until = async (count: RegExp) => {
      const untilMs = Date.now() + 20_000
      while (!count.test(metrics.render()) && Date.now() < untilMs) await new Promise(setImmediate)
      assert.match(metrics.render(), count)
    }
    try {
      writeFileSync(file, configuration([]))
      await until(/automatic_reloads_total\{status="failure".*\} 1$/m)
      assert.equal((await may(api, 'eve', 'get', 'pods')).allowed, false)
      writeFileSync(file, configuration([{ type: 'AlwaysAllow', name: 'alwaysallow' }]))
      await until(/automatic_reloads_total\{status="failure".*\} 2$/m)
      writeFileSync(file, configuration([deny, { type: 'AlwaysAllow', name: 'alwaysallow' }]))
      await until(/automatic_reloads_total\{status="success".*\} 1$/m)
      assert.equal((await may(api, 'eve', 'get', 'pods')).allowed, true)
    } finally {
      await api.close()
    }
  })

  const rbac = { type: 'RBAC', name: 'rbac' }
  const faults = (): readonly [name: string, content: string, want: RegExp][] => [
    ['nothing', configuration([]), /^authorizers: Required value: at least one authorization mode must be defined$/],
    ['an unknown field', '{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","x":1}', /strict decoding error: unknown field "x"$/],
    [
      'an unknown type',
      configuration([{ type: 'Magic', name: 'm' }]),
      /^authorizers\[0\].type: Unsupported value: "Magic": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"$/,
    ],
    ['twice', configuration([rbac, rbac]), /^authorizers\[1\].type: Duplicate value: "RBAC"$/],
    ['a name of its own', configuration([{ ...rbac, name: 'mine' }]), /^expected name rbac for authorizer RBAC instead of mine$/],
    ['no webhook', configuration([{ type: 'Webhook', name: 'w' }]), /^authorizers\[0\].webhook: Required value: required when type=Webhook$/],
    [
      'a webhook that says nothing',
      configuration([{ type: 'Webhook', name: 'w', webhook: {} }]),
      /^\[authorizers\[0\].timeout: Required value, authorizers\[0\].subjectAccessReviewVersion: Required value, authorizers\[0\].failurePolicy: Required value, authorizers\[0\].connectionInfo.type: Required value\]$/,
    ],
    [
      'too long, and a condition that is none',
      configuration([{ type: 'Webhook', name: 'w', webhook: webhookOf({ timeout: '31s', matchConditions: [{ expression: 'request.user' }] }) }]),
      /^\[authorizers\[0\].timeout: Invalid value: "31s": must be > 0s and <= 30s, authorizers\[0\].matchConditions\[0\].expression: Invalid value: "request.user": must evaluate to bool but got string\]$/,
    ],
    [
      'a kubeconfig that is not there',
      configuration([{ type: 'Webhook', name: 'w', webhook: webhookOf({ connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/nowhere/x' } }) }]),
      /kubeConfigFile: Invalid value: "\/nowhere\/x": error loading file: stat \/nowhere\/x: no such file or directory$/,
    ],
  ]
  test('AUZ-06 a configuration is refused with every fault', async (context) => {
    for (const [name, content, want] of faults()) {
      const started = start(content).then((api) => api.close())
      await context.test(name, () => assert.rejects(started, { message: want }))
    }
  })
})
