/**
 * A server at the highest log level writes no credential and no secret to its logs. Runs `skiff apiserver` as users do, with an audit log of metadata,
 * and reads all output of the process.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { eventually, skiffBin } from '../../e2e/support/localCluster.ts'
import { rawHttp } from '../../integration/api/rawHttp.ts'

const built = fs.existsSync(path.resolve(import.meta.dirname, '../../../dist/skiff.mjs'))
const skip = built ? false : 'needs a build: make build'

test('OBS-11 CVE-2019-11250 CVE-2020-8564 CVE-2020-8565 no credential and no secret is in what the server writes, at any verbosity', {
  skip,
  timeout: 120_000,
}, async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-logs-'))
  const tokens = {
    admin: 'good-token-4711',
    bad: 'wrong-token-4712',
    subprotocol: 'socket-token-4713',
    basic: 'basic-password-4714',
    reviewed: 'reviewed-token-4715',
  }
  const secret = { plain: 'secret-value-4716', docker: 'docker-password-4717', broken: 'broken-password-4718' }
  fs.writeFileSync(path.join(dir, 'tokens.csv'), `${tokens.admin},admin,1,system:masters\n`, { mode: 0o600 })
  fs.writeFileSync(path.join(dir, 'policy.yaml'), 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n')
  const flags = [`--data-dir=${dir}/data`, `--token-auth-file=${dir}/tokens.csv`, `--audit-policy-file=${dir}/policy.yaml`, '--audit-log-path=-', '--v=10']
  const child = spawn(process.execPath, [skiffBin, 'apiserver', '--secure-port=0', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  let written = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => (written += chunk))
  try {
    const text = await eventually(
      'it serves',
      60_000,
      async () => {
        assert.equal(child.exitCode, null, written)
        return written
      },
      (said) => /Serving securely.*127\.0\.0\.1:\d+/.test(said),
    )
    const port = Number(/Serving securely.*127\.0\.0\.1:(\d+)/.exec(text)?.[1])
    const ca = fs.readFileSync(path.join(dir, 'data/pki/ca.crt'), 'utf8')
    const call = (method: string, target: string, body?: unknown, headers: Record<string, string> = {}) =>
      rawHttp(
        { url: '', port, ca, token: tokens.admin },
        {
          method,
          path: target,
          headers: { 'content-type': 'application/json', ...headers },
          ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        },
      )
    const secrets = '/api/v1/namespaces/default/secrets'
    assert.equal((await call('POST', secrets, { metadata: { name: 's' }, stringData: { a: secret.plain } })).status, 201)
    await call('PATCH', `${secrets}/s`, { stringData: { b: secret.plain } }, { 'content-type': 'application/merge-patch+json' })
    await call('POST', secrets, `{"metadata":{"name":"t"},"stringData":{"a":"${secret.plain}"`)
    const docker = (content: string) => ({
      metadata: { generateName: 'd-' },
      type: 'kubernetes.io/dockerconfigjson',
      stringData: { '.dockerconfigjson': content },
    })
    await call('POST', secrets, docker(`{"auths":{"r":{"password":"${secret.docker}"}}}`))
    await call('POST', secrets, docker(`{"auths":{"r":{"password":"${secret.broken}"`))
    await call('GET', '/api/v1/nodes', undefined, { authorization: `Bearer ${tokens.bad}` })
    await call('GET', '/api/v1/nodes', undefined, { authorization: `Basic ${Buffer.from(`u:${tokens.basic}`).toString('base64')}` })
    await call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: tokens.reviewed } })
    await call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'a' } })
    const made = await call('POST', '/api/v1/namespaces/default/serviceaccounts/a/token', { spec: {} })
    const issued = JSON.parse(made.body.toString()).status.token as string
    await call('GET', '/api/v1/namespaces', undefined, { authorization: `Bearer ${issued}` })
    await webSocket(port, Buffer.from(tokens.subprotocol).toString('base64url'))
    const count = () => written.match(/"requestURI"/g)?.length ?? 0
    await eventually(
      'the audit log is written',
      20_000,
      async () => count(),
      (lines) => lines >= 12,
    )
    assert.match(written, /tokenreviews/)
    const hidden = [...Object.values(tokens), secret.plain, secret.docker, secret.broken, issued, issued.split('.')[2] ?? '']
    const forms = hidden.flatMap((text) => [text, Buffer.from(text).toString('base64').replace(/=+$/, ''), text.slice(-12)])
    assert.deepEqual(
      forms.filter((text) => written.includes(text)),
      [],
    )
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
    fs.rmSync(dir, { recursive: true, force: true })
  }
})

/** A browser's way to send a token. */
function webSocket(port: number, token: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const upgrade = 'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
      socket.write(
        `GET /api/v1/pods?watch=1 HTTP/1.1\r\nhost: a\r\n${upgrade}sec-websocket-protocol: base64url.bearer.authorization.k8s.io.${token}, v4.channel.k8s.io\r\n\r\n`,
      )
    })
    socket.once('data', () => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
  })
}
