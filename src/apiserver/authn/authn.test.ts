/** Authentication under attack: forged, foreign, stale and misused credentials. */
import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { VirtualClock } from '#base/virtualClock'
import type { ObjectReader } from '../core/objectReader.ts'
import type { ServerRequest } from '../core/request.ts'
import { signToken, type TokenClaims } from '../tokens/jwt.ts'
import { staticKeys } from '../tokens/keySet.ts'
import { type SigningKey, signingKey } from '../tokens/keys.ts'
import { anonymousAuthenticator } from './anonymous.ts'
import { bearerTokenAuthenticator } from './bearerToken.ts'
import { boundClaims } from './boundClaims.ts'
import { serviceAccountAuthenticator } from './serviceAccount.ts'
import { unionAuthenticator } from './union.ts'
import { x509Authenticator } from './x509.ts'

const newKey = (type: 'rsa' | 'ec'): SigningKey => {
  const { privateKey } = type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return signingKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
}
const ours = newKey('ec')
const oursRsa = newKey('rsa')
const foreign = newKey('ec')
const issuer = 'https://issuer'
const clock = new VirtualClock()
const now = clock.now() / 1000

const claims: TokenClaims = {
  aud: ['api'],
  exp: now + 600,
  iat: now,
  nbf: now,
  iss: issuer,
  jti: 'j',
  sub: 'system:serviceaccount:ns:app',
  'kubernetes.io': { namespace: 'ns', serviceaccount: { name: 'app', uid: 'sa-1' }, pod: { name: 'p', uid: 'pod-1' }, node: { name: 'n', uid: 'node-1' } },
}

/** A reader that finds the service account, and the pod unless it is undefined. */
function reader(pod: { uid: string; deletionTimestamp?: string } | undefined, accountUid = 'sa-1'): ObjectReader {
  const objects: Record<string, object | undefined> = { 'serviceaccounts/ns/app': { uid: accountUid }, 'pods/ns/p': pod }
  const get = ({ resource }: { resource: string }, namespace: string, name: string) => {
    const metadata = objects[`${resource}/${namespace}/${name}`]
    return metadata && ({ metadata } as KubeObject)
  }
  return { get: get as ObjectReader['get'], list: () => [], onChange: () => () => {} }
}

const livePod = { uid: 'pod-1' }
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const without = (name: keyof TokenClaims) => ({ ...claims, [name]: undefined }) as unknown as TokenClaims
const own = claims['kubernetes.io']
const deletedAt = (secondsAgo: number) => ({ ...livePod, deletionTimestamp: formatTime(clock.now() - secondsAgo * 1000) })

/** A token whose header lies about how it was signed. */
const forged = (header: object, signature: (signed: string) => string) => {
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${signature(signed)}`
}
const publicPem = oursRsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()

const cases: readonly { name: string; token: string; reader?: ObjectReader; audiences?: string[]; want: 'authenticated' | 'rejected' | undefined }[] = [
  { name: 'a good token', token: signToken(claims, ours), want: 'authenticated' },
  { name: 'a good RSA token', token: signToken(claims, oursRsa), want: 'authenticated' },
  { name: 'another issuer is not ours to judge', token: signToken({ ...claims, iss: 'https://else' }, ours), want: undefined },
  { name: 'no token at all', token: 'garbage', want: undefined },
  { name: 'a foreign key', token: signToken(claims, foreign), want: 'rejected' },
  { name: "a foreign key under our key's id", token: signToken(claims, { ...foreign, id: ours.id }), want: 'rejected' },
  { name: 'algorithm none', token: forged({ alg: 'none' }, () => ''), want: 'rejected' },
  { name: 'algorithm none under our key id', token: forged({ alg: 'none', kid: ours.id }, () => ''), want: 'rejected' },
  {
    name: 'the public key used as a shared secret',
    token: forged({ alg: 'HS256', kid: oursRsa.id }, (signed) => createHmac('sha256', publicPem).update(signed).digest('base64url')),
    want: 'rejected',
  },
  { name: 'an empty signature', token: forged({ alg: 'ES256', kid: ours.id }, () => ''), want: 'rejected' },
  { name: 'critical headers that we do not know', token: forged({ alg: 'ES256', kid: ours.id, crit: ['x'] }, () => 'AA'), want: 'rejected' },
  { name: 'changed claims', token: signToken(claims, ours).replace(/\.[^.]*\./, `.${encode({ ...claims, exp: now + 9e9 })}.`), want: 'rejected' },
  { name: 'expired, by a clock that is ahead', token: signToken({ ...claims, exp: now - 60 }, ours), want: 'authenticated' },
  { name: 'expired', token: signToken({ ...claims, exp: now - 61 }, ours), want: 'rejected' },
  { name: 'not valid yet, by a clock that is behind', token: signToken({ ...claims, nbf: now + 60 }, ours), want: 'authenticated' },
  { name: 'not valid yet', token: signToken({ ...claims, nbf: now + 61 }, ours), want: 'rejected' },
  { name: 'issued in the future', token: signToken({ ...claims, iat: now + 61 }, ours), want: 'rejected' },
  { name: 'no expiry', token: signToken(without('exp'), ours), want: 'rejected' },
  { name: 'the wrong audience', token: signToken({ ...claims, aud: ['vault'] }, ours), want: 'rejected' },
  { name: 'a subject that is not the claimed account', token: signToken({ ...claims, sub: 'system:admin' }, ours), want: 'rejected' },
  { name: 'no private claims', token: signToken(without('kubernetes.io'), ours), want: 'rejected' },
  { name: 'an account that was deleted and created again', token: signToken(claims, ours), reader: reader(livePod, 'sa-2'), want: 'rejected' },
  { name: 'a deleted pod', token: signToken(claims, ours), reader: reader(undefined), want: 'rejected' },
  { name: 'a pod of the same name', token: signToken(claims, ours), reader: reader({ uid: 'pod-2' }), want: 'rejected' },
  { name: 'a pod that is shutting down', token: signToken(claims, ours), reader: reader(deletedAt(30)), want: 'authenticated' },
  { name: 'a pod that should be gone', token: signToken(claims, ours), reader: reader(deletedAt(61)), want: 'rejected' },
  { name: 'bound to a node that is gone', token: signToken({ ...claims, 'kubernetes.io': { ...own, pod: undefined } }, ours), want: 'rejected' },
]

const accounts = (world: ObjectReader, keys: readonly SigningKey[]) =>
  serviceAccountAuthenticator({ keySet: staticKeys(keys), issuers: [issuer], apiAudiences: ['api'], claims: boundClaims({ reader: world, clock }) })

for (const { name, token, reader: world = reader(livePod), audiences = ['api'], want } of cases) {
  test(`AUN-03 service account token: ${name}`, async () => {
    const authenticator = accounts(world, [ours, oursRsa])
    const first = await authenticator.authenticateToken(token, audiences)
    assert.equal(first?.decision, want)
    // What the cache remembers decides the same.
    assert.deepEqual(await authenticator.authenticateToken(token, audiences), first)
  })
}

const request = (headers: Record<string, string>, peer?: ServerRequest['peerCertificate']) => ({ headers, peerCertificate: peer }) as unknown as ServerRequest

test('AUN-01 a bad credential is refused, no credential is anonymous, and a good one wins over a bad one', async () => {
  const tokens = [accounts(reader(livePod), [ours])]
  const union = unionAuthenticator([x509Authenticator(clock), bearerTokenAuthenticator(tokens, ['api'])])
  const decide = async (one: ServerRequest) => {
    const result = (await union.authenticate(one)) ?? (await anonymousAuthenticator().authenticate(one))
    return result?.decision === 'authenticated' ? result.user.name : result?.decision
  }
  const foreignCertificate = { raw: new Uint8Array(), verified: false, verifyError: 'unable to get local issuer certificate' }
  const good = signToken(claims, ours)
  assert.equal(await decide(request({})), 'system:anonymous')
  assert.equal(await decide(request({ authorization: 'Bearer nonsense' })), 'rejected')
  assert.equal(await decide(request({}, foreignCertificate)), 'rejected')
  assert.equal(await decide(request({ authorization: `Bearer ${good}` })), claims.sub)
  assert.equal(await decide(request({ authorization: `bearer ${good}` }, foreignCertificate)), claims.sub)
  assert.equal(await decide(request({ authorization: `Basic ${good}` })), 'system:anonymous')
  const protocol = `v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from(good).toString('base64url')}`
  assert.equal(await decide(request({ 'sec-websocket-protocol': protocol })), claims.sub)
})
