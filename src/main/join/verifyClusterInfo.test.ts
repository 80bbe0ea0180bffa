import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { toYaml } from '#api/machinery/yaml'
import type { CommandError } from '#cli/exitCodes'
import { publicKeyHash } from '#cli/publicKeyHash'
import { detachedSignature } from '#controllers/bootstrap/signer'
import { createAuthority } from '../pki/certificates.ts'
import { acceptedAuthorities, parseToken, signedDescription, trustedCluster } from './verifyClusterInfo.ts'

const authority = await createAuthority('kubernetes', Date.now(), 1)
const token = parseToken('abcdef.0123456789abcdef')
const description = (server = 'https://10.0.0.1:6443', ca = authority.cert) =>
  toYaml({ clusters: [{ name: '', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }] })
const signed = (text: string) => ({ kubeconfig: text, 'jws-kubeconfig-abcdef': detachedSignature(text, token.id, token.secret) })
const hash = publicKeyHash(authority.cert)
const pin = `sha256:${hash}`
const pinned = acceptedAuthorities([pin], false)

const refusals: readonly { readonly name: string; readonly exit: CommandError['exit']; readonly text: RegExp; run(): unknown }[] = [
  { name: 'a token of another form', exit: 'usage', text: /expected 6 characters/, run: () => parseToken('abcdef.short') },
  { name: 'a pin that is no SHA-256', exit: 'usage', text: /expected sha256:/, run: () => acceptedAuthorities(['sha256:abc'], false) },
  { name: 'a pin of another kind', exit: 'usage', text: /expected sha256:/, run: () => acceptedAuthorities([`md5:${'0'.repeat(64)}`], true) },
  { name: 'a command without a pin', exit: 'usage', text: /--discovery-token-ca-cert-hash is missing/, run: () => acceptedAuthorities([], false) },
  { name: 'a cluster without a description', exit: 'unmetPrerequisite', text: /no description/, run: () => signedDescription({}, token) },
  { name: 'a token that signed nothing', exit: 'notFound', text: /does not know the token "abcdef"/, run: () => signedDescription({ kubeconfig: 'x' }, token) },
  {
    name: 'a signature by another secret',
    exit: 'conflict',
    text: /cannot be trusted/,
    run: () => signedDescription(signed(description()), { id: 'abcdef', secret: 'ffffffffffffffff' }),
  },
  {
    name: 'a description that was changed after it was signed',
    exit: 'conflict',
    text: /cannot be trusted/,
    run: () => signedDescription({ ...signed(description()), kubeconfig: description('https://10.6.6.6:6443') }, token),
  },
  {
    name: 'an authority with another key',
    exit: 'conflict',
    text: new RegExp(`has another public key than .*: sha256:${hash}`),
    run: () => trustedCluster(description(), acceptedAuthorities([`sha256:${'0'.repeat(64)}`], true)),
  },
  { name: 'a server without TLS', exit: 'internal', text: /is not an https URL/, run: () => trustedCluster(description('http://10.0.0.1'), pinned) },
  { name: 'a description that is no kubeconfig', exit: 'internal', text: /cannot be used/, run: () => trustedCluster('[]', pinned) },
  {
    name: 'a description without an authority, also where any is accepted',
    exit: 'internal',
    text: /names no certificate authority/,
    run: () => trustedCluster(description(undefined, ''), 'any'),
  },
  {
    name: 'a description whose authority is no certificate',
    exit: 'internal',
    text: /cannot be used/,
    run: () => trustedCluster(description(undefined, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'), pinned),
  },
]
for (const { name, exit, text, run } of refusals) {
  test(`KUB-23 a machine that joins refuses ${name}`, () => {
    assert.throws(run, (error: CommandError) => error.exit === exit && text.test(error.message))
  })
}

test('KUB-23 a machine that joins accepts a description that its token signed, of the authority that it expects', () => {
  const text = signedDescription(signed(description()), token)
  const accepted = acceptedAuthorities([`sha256:${'0'.repeat(64)}`, `sha256:${hash.toUpperCase()}`], false)
  assert.deepEqual(trustedCluster(text, accepted), { server: 'https://10.0.0.1:6443', ca: `${authority.cert}\n` })
})

test('KUB-23 of several authorities in a description, those without a pin are left out', async () => {
  const other = await createAuthority('kubernetes', Date.now(), 1)
  const text = description(undefined, `${other.cert}\n${authority.cert}\n`)
  assert.equal(trustedCluster(text, pinned).ca, `${authority.cert}\n`)
  assert.equal(trustedCluster(text, 'any').ca, `${other.cert}\n${authority.cert}\n`)
})

test('KUB-23 any authority is accepted only without a pin, when the user asks for that', () => {
  assert.equal(acceptedAuthorities([], true), 'any')
  assert.deepEqual(acceptedAuthorities([pin], true), { publicKeyHashes: [hash] })
})

test('KUB-23 the hash of an authority is that of its SubjectPublicKeyInfo, so that a renewed certificate has the same', () => {
  const { publicKey } = new X509Certificate(authority.cert)
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  assert.equal(hash, createHash('sha256').update(der).digest('hex'))
})
