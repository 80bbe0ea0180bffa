/**
 * Speaks the key management service API v2 over a unix socket (L1).
 * Upstream: apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service.go, k8s.io/kms/pkg/util (v1.36).
 */
import { kmsProto } from './proto/kms.ts'
import { connectUnixService } from './unixService.ts'

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
  const service = connectUnixService(kmsProto, 'v2.KeyManagementService', addressOf(endpoint))
  const call = <Response>(method: string, request: object) => service.call<Response>(method, request, timeoutMs)
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
    close: () => service.close(),
  }
}

function addressOf(endpoint: string): string {
  const path = new URL(endpoint).pathname
  return path.startsWith('/@') ? `unix-abstract:${path.slice(2)}` : `unix:${path}`
}
