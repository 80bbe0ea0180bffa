/**
 * Roles whose rules mean millions of single permissions (AUZ-01), sent by a user who may write roles in one namespace. The server compares each with
 * what the user holds; another user must not wait for it, and memory must not grow.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { HttpsAnswer } from '../../support/httpsCall.ts'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const group = 'rbac.authorization.k8s.io'
const rbac = `/apis/${group}/v1`
const inDefault = `${rbac}/namespaces/default`
const many = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`)
const product = (count: number) => ({
  verbs: many('v', count),
  apiGroups: many('g', count),
  resources: many('r', count),
  resourceNames: many('n', count),
})
const subjects = [{ kind: 'User', apiGroup: group, name: 'mallory' }]

/** At 10729dd another user waited for 26 seconds. */
const mostWaitMs = 500
const mostGrowthBytes = 64 * 1024 * 1024

let server: ServerUnderAttack
before(async () => {
  server = await startServerUnderAttack()
  const may = [
    { verbs: ['create', 'update', 'patch', 'get'], apiGroups: [group], resources: ['roles', 'rolebindings'] },
    { verbs: ['v0', 'v1'], apiGroups: many('g', 30), resources: many('r', 30) },
  ]
  for (const [path, body] of [
    [`${inDefault}/roles`, { metadata: { name: 'mallory' }, rules: may }],
    [`${inDefault}/rolebindings`, { metadata: { name: 'mallory' }, roleRef: { apiGroup: group, kind: 'Role', name: 'mallory' }, subjects }],
    [`${rbac}/clusterroles`, { metadata: { name: 'huge' }, rules: [product(60)] }],
  ] as const) {
    const { status, text } = await server.as('admin', 'POST', path, body)
    assert.equal(status, 201, text)
  }
})
after(() => server.stop())

async function bystanderDuring(attack: () => Promise<HttpsAnswer>): Promise<HttpsAnswer> {
  const answers: HttpsAnswer[] = []
  const heldBefore = await server.heldBytes()
  const { p99 } = await server.beside(async () => {
    answers.push(await attack())
  })
  const growth = (await server.heldBytes()) - heldBefore
  assert.ok(p99 < mostWaitMs, `another user waited for ${p99} ms`)
  assert.ok(growth < mostGrowthBytes, `the server holds ${growth} bytes more`)
  return answers[0] as HttpsAnswer
}

const create = (name: string, rules: readonly object[]) => server.as('mallory', 'POST', `${inDefault}/roles`, { metadata: { name }, rules })

for (const count of [30, 60, 2_000]) {
  test(`AUZ-01 a Role of ${count} x ${count} x ${count} x ${count} that its author does not hold is refused at once`, { timeout: 60_000 }, async () => {
    const { status, text, json } = await bystanderDuring(() => create(`of-${count}`, [product(count)]))
    assert.equal(status, 403, text.slice(0, 1_000))
    assert.match(json.message, /user "mallory" .* is attempting to grant RBAC permissions not currently held:\n/)
    assert.match(json.message, /\{APIGroups:\["g\d+"\], Resources:\["r\d+"\], ResourceNames:\["n\d+"\], Verbs:\["v2" "v3" /)
    assert.match(json.message, /\nand more$/)
    assert.ok(text.length < 2 * 1024 * 1024, `${text.length} characters`)
  })
}

test('AUZ-01 a Role of many products that its author holds is created', { timeout: 60_000 }, async () => {
  const rule = { ...product(30), verbs: ['v0', 'v1'] }
  const { status, text } = await bystanderDuring(() =>
    create(
      'held',
      Array.from({ length: 100 }, () => rule),
    ),
  )
  assert.equal(status, 201, text.slice(0, 1_000))
})

test('AUZ-01 a RoleBinding to a huge ClusterRole that its author does not hold is refused at once', { timeout: 60_000 }, async () => {
  const binding = { metadata: { name: 'huge' }, roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'huge' }, subjects }
  const { status, text } = await bystanderDuring(() => server.as('mallory', 'POST', `${inDefault}/rolebindings`, binding))
  assert.equal(status, 403, text.slice(0, 1_000))
})
