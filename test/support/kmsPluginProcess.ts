/**
 * A key management plugin (KMS v2) in a process of its own: it wraps keys with AES-GCM under one of its own keys, whose id the parent chooses. It was
 * written against the service's description alone.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { loadPackageDefinition, Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { kmsProto } from '#grpc/proto/kms'
import { parseProto } from '#grpc/protoText'

const [socket = '', firstKeyId = '1'] = process.argv.slice(2)
let keyId = firstKeyId
let healthz = 'ok'
const counts = { Encrypt: 0, Decrypt: 0 }

const keyOf = (id: string) => createHash('sha256').update(`key ${id}`).digest()

interface Call {
  readonly request: { readonly plaintext: Buffer; readonly ciphertext: Buffer; readonly keyId: string; readonly annotations: Readonly<Record<string, Buffer>> }
}
type Done = (error: object | null, answer?: object) => void

const plugin = {
  Status: (_call: Call, done: Done) => done(null, { version: 'v2', healthz, keyId }),
  Encrypt({ request }: Call, done: Done) {
    counts.Encrypt++
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', keyOf(keyId), nonce)
    const ciphertext = Buffer.concat([cipher.update(request.plaintext), cipher.final(), cipher.getAuthTag()])
    done(null, { ciphertext, keyId, annotations: { 'nonce.kms.example': nonce } })
  },
  Decrypt({ request }: Call, done: Done) {
    counts.Decrypt++
    try {
      const { ciphertext, annotations } = request
      const decipher = createDecipheriv('aes-256-gcm', keyOf(request.keyId), annotations['nonce.kms.example'] ?? Buffer.alloc(12))
      decipher.setAuthTag(ciphertext.subarray(-16))
      done(null, { plaintext: Buffer.concat([decipher.update(ciphertext.subarray(0, -16)), decipher.final()]) })
    } catch (error) {
      done({ code: status.INVALID_ARGUMENT, details: (error as Error).message })
    }
  },
}

const definition = loadPackageDefinition(fromJSON(parseProto(kmsProto) as never, { longs: Number, defaults: true, bytes: Buffer }))
const { KeyManagementService } = definition.v2 as unknown as Record<string, { readonly service: ServiceDefinition }>
const server = new Server()
server.addService(KeyManagementService?.service as ServiceDefinition, plugin as never)
server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => process.send?.({ listening: !error, error: error?.message }))

process.on('message', (message: { readonly keyId?: string; readonly healthz?: string }) => {
  keyId = message.keyId ?? keyId
  healthz = message.healthz ?? healthz
  process.send?.({ counts })
})
process.on('disconnect', () => server.forceShutdown())
