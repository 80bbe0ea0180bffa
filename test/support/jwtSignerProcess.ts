/**
 * An external signer of service account tokens in a process of its own, with keys that the parent chooses by number. It was written against the
 * service's description alone.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { loadPackageDefinition, Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { externalJwtProto } from '#grpc/proto/externalJwt'
import { parseProto } from '#grpc/protoText'
import type { SignerState } from './jwtSigner.ts'

const [socket = '', first = '{}'] = process.argv.slice(2)
let state = JSON.parse(first) as SignerState
const counts = { Sign: 0, FetchKeys: 0 }
const pairs = new Map<string, { readonly privateKey: KeyObject; readonly publicKey: KeyObject }>()

function pairOf(id: string) {
  const known = pairs.get(id)
  if (known) return known
  const made = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  pairs.set(id, made)
  return made
}

interface Call {
  readonly request: { readonly claims: string }
}
type Done = (error: object | null, answer?: object) => void

const signer = {
  Sign({ request }: Call, done: Done) {
    counts.Sign++
    if (state.fails) return done({ code: status.UNAVAILABLE, details: 'the vault is sealed' })
    const header = Buffer.from(JSON.stringify(state.header ?? { alg: 'ES256', kid: state.signsWith, typ: 'JWT' })).toString('base64url')
    const signature = sign('sha256', Buffer.from(`${header}.${request.claims}`), { key: pairOf(state.signsWith).privateKey, dsaEncoding: 'ieee-p1363' })
    done(null, { header, signature: signature.toString('base64url') })
  },
  FetchKeys(_call: Call, done: Done) {
    counts.FetchKeys++
    const keys = state.keys.map(({ id, hidden = false }) => {
      return { keyId: id, key: pairOf(id).publicKey.export({ type: 'spki', format: 'der' }), excludeFromOidcDiscovery: hidden }
    })
    done(null, { keys, dataTimestamp: { seconds: state.dataSeconds ?? 1_700_000_000, nanos: 500_000_000 }, refreshHintSeconds: state.refreshSeconds ?? 300 })
  },
  Metadata: (_call: Call, done: Done) => done(null, { maxTokenExpirationSeconds: state.maxSeconds ?? 7200 }),
}

const definition = loadPackageDefinition(fromJSON(parseProto(externalJwtProto) as never, { longs: Number, defaults: true, bytes: Buffer }))
const { ExternalJWTSigner } = definition.v1 as unknown as Record<string, { readonly service: ServiceDefinition }>
const server = new Server()
server.addService(ExternalJWTSigner?.service as ServiceDefinition, signer as never)
server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => process.send?.({ listening: !error, error: error?.message }))

process.on('message', (change: Partial<SignerState>) => {
  state = { ...state, ...change }
  process.send?.({ counts })
})
process.on('disconnect', () => server.forceShutdown())
