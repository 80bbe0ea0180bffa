/**
 * Speaks the key management service API v2 over a unix socket (L1): three calls, one connection, which is opened lazily and again by itself.
 * Upstream: apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service.go, k8s.io/kms/pkg/util (v1.36).
 */
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { kmsProto } from './proto/kms.ts'
import { loadProto } from './protoText.ts'

export interface KmsClient {
  status(): Promise<{ readonly version: string; readonly healthz: string; readonly keyId: string }>
  encrypt(
    uid: string,
    plaintext: Uint8Array,
  ): Promise<{ readonly ciphertext: Uint8Array; readonly keyId: string; readonly annotations: ReadonlyMap<string, Uint8Array> }>
  decrypt(
    uid: string,
    request: { readonly ciphertext: Uint8Array; readonly keyId: string; readonly annotations: ReadonlyMap<string, Uint8Array> },
  ): Promise<Uint8Array>
  close(): void
}

/** A failed call, in the words and with the status name of Go's client. */
export class KmsError extends Error {
  /** `Unavailable`, `DeadlineExceeded`, … */
  readonly grpcStatus: string

  constructor({ code, details }: ServiceError) {
    const grpcStatus = goName(status[code] ?? 'UNKNOWN')
    super(`rpc error: code = ${grpcStatus} desc = ${details}`)
    this.name = 'KmsError'
    this.grpcStatus = grpcStatus
  }
}

function goName(name: string): string {
  if (name === 'CANCELLED') return 'Canceled'
  return name
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
}

type Method = (request: object, metadata: Metadata, options: { deadline: number }, done: (error: ServiceError | null, response: never) => void) => void

interface EncryptResponse {
  readonly ciphertext: Buffer
  readonly keyId: string
  readonly annotations: Readonly<Record<string, Buffer>>
}

/**
 * @param endpoint `unix:///path`, or `unix:///@name` for an abstract socket
 * @param timeoutMs of each call; until then it waits for the service to come
 */
export function connectKms(endpoint: string, timeoutMs: number): KmsClient {
  const definition = loadPackageDefinition(loadProto(kmsProto, { longs: Number, defaults: true, bytes: Buffer }))
  const { KeyManagementService } = definition.v2 as unknown as Record<string, new (address: string, security: unknown, options: object) => Client>
  if (!KeyManagementService) throw new Error('the service description has no KeyManagementService')
  const options = { 'grpc.default_authority': 'localhost', 'grpc.initial_reconnect_backoff_ms': 200, 'grpc.max_reconnect_backoff_ms': 5_000 }
  const client = new KeyManagementService(addressOf(endpoint), credentials.createInsecure(), options)
  const call = <Response>(method: string, request: object): Promise<Response> =>
    new Promise((resolve, reject) => {
      const metadata = new Metadata({ waitForReady: true })
      const unary = (client as unknown as Record<string, Method>)[method] as Method
      unary.call(client, request, metadata, { deadline: Date.now() + timeoutMs }, (error, response) =>
        error ? reject(new KmsError(error)) : resolve(response),
      )
    })
  return {
    status: () => call('Status', {}),
    async encrypt(uid, plaintext) {
      const { ciphertext, keyId, annotations } = await call<EncryptResponse>('Encrypt', { uid, plaintext })
      return { ciphertext, keyId, annotations: new Map(Object.entries(annotations)) }
    },
    async decrypt(uid, { ciphertext, keyId, annotations }) {
      const { plaintext } = await call<{ plaintext: Buffer }>('Decrypt', { uid, ciphertext, keyId, annotations: Object.fromEntries(annotations) })
      return plaintext
    },
    close: () => client.close(),
  }
}

function addressOf(endpoint: string): string {
  const path = new URL(endpoint).pathname
  return path.startsWith('/@') ? `unix-abstract:${path.slice(2)}` : `unix:${path}`
}
