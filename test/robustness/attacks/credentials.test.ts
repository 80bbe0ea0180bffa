/**
 * A client without a credential, with a wrong one, or without a role gets only what upstream shows to all users: every operation of the server's
 * own OpenAPI document is tried, and every path that it lists.
 */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:https'
import { after, before, test } from 'node:test'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

let server: ServerUnderAttack
/** HTTP/1.1: over HTTP/2 an unauthenticated client gets GOAWAY after every request. */
const agent = new Agent({ keepAlive: true, maxSockets: 8 })
let operations: readonly (readonly [method: string, path: string])[]
before(async () => {
  server = await startServerUnderAttack()
  const document = (await server.as('admin', 'GET', '/openapi/v2')).json as { paths: Record<string, Record<string, unknown>> }
  const listed = (await server.as('admin', 'GET', '/')).json as { paths: string[] }
  const described = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.keys(verbs)
      .filter((verb) => verb !== 'parameters')
      .map((verb) => [verb.toUpperCase(), filledIn(path)] as const),
  )
  const others = [...listed.paths, '/', '/metrics', '/metrics/slis', '/logs', '/flagz', '/statusz', '/debug/pprof/', '/debug/pprof/profile', '/debug/flags/v']
  operations = [...described, ...['GET', 'POST', 'HEAD', 'DELETE'].flatMap((verb) => others.map((path) => [verb, path] as const))]
  assert.ok(described.length > 500, `${described.length}`)
})
after(async () => {
  agent.destroy()
  await server.stop()
})

const filledIn = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, parameter) => (parameter === 'namespace' ? 'default' : 'innocent'))

function statusOf(method: string, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const body = method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? undefined : '{}'
    const about = body ? { 'content-type': 'application/json', 'content-length': '2' } : {}
    const call = request({ host: '127.0.0.1', port: server.port, ca: server.ca, agent, method, path, headers: { ...about, ...headers } }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    call.on('error', reject)
    call.end(body)
  })
}

/** Everything that was answered with anything but this. */
async function answeredOtherwise(refusal: number, headers: Record<string, string>): Promise<string[]> {
  const found = new Set<string>()
  const queue = [...operations]
  const work = async () => {
    for (let next = queue.pop(); next; next = queue.pop()) {
      const [method, path] = next
      const status = await statusOf(method, path, headers)
      if (status !== refusal) found.add(`${method} ${path} ${status}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  return [...found].sort()
}

/** `system:public-info-viewer`. */
const everybodys = ['/healthz', '/livez', '/readyz', '/version', '/version/']
const isEverybodys = (one: string) => everybodys.includes(one.split(' ')[1] ?? '') && one.startsWith('GET ') && one.endsWith(' 200')
/** `system:discovery`. */
const isDiscovery = (one: string) =>
  /^GET (\/apis?\/?|\/api\/v1\/?|\/apis\/[^/]+\/?([^/]+\/?)?|\/openapi\/\S*|\/version\/?|\/(health|live|ready)z) (200|404|406)$/.test(one)
/** `system:basic-user`. */
const isSelfReview = (one: string) => /^POST \/apis\/auth\S+\/self\w+reviews (201|422|400)$/.test(one)

test('AUZ-01 without a credential: health and version', { timeout: 60_000 }, async () => {
  const answered = await answeredOtherwise(403, {})
  assert.deepEqual(
    answered.filter((one) => !isEverybodys(one)),
    [],
  )
  assert.deepEqual([...new Set(answered.map((one) => one.split(' ')[1]))], everybodys)
})

for (const authorization of ['Bearer nobody', 'Bearer a.b.c'])
  test(`AUN-01 a wrong credential: nothing (${authorization.slice(0, 20)})`, { timeout: 60_000 }, async () =>
    assert.deepEqual(await answeredOtherwise(401, { authorization }), []),
  )

test('AUZ-01 without a role: discovery and questions about oneself, too', { timeout: 60_000 }, async () => {
  const answered = await answeredOtherwise(403, { authorization: 'Bearer mallory' })
  assert.deepEqual(
    answered.filter((one) => !isEverybodys(one) && !isDiscovery(one) && !isSelfReview(one)),
    [],
  )
  assert.equal(answered.filter(isSelfReview).length, 3)
})
