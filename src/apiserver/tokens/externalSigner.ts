/**
 * Leaves signing service account tokens, and the keys that verify them, to an external service (L3): --service-account-signing-endpoint. Its keys
 * are fetched again at the interval that it sets, and when a token names an unknown key. The composition root supplies the connection.
 * Upstream: pkg/serviceaccount/externaljwt (v1.36).
 */
import { createPublicKey } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { TokenSigner } from './issuer.ts'
import { decodeBase64Url } from './jwt.ts'
import { type KeySet, keysFor } from './keySet.ts'
import { type VerificationKey, verificationKeyOf } from './keys.ts'

/** Calls reject with an Error that names, as `grpcStatus`, the status in Go's spelling: `Unavailable`. */
export interface SignerService {
  sign(claims: string): Promise<{ readonly header: string; readonly signature: string }>
  fetchKeys(): Promise<FetchedKeys>
  metadata(): Promise<{ readonly maxTokenExpirationSeconds: number }>
  close(): void
}

interface FetchedKeys {
  readonly keys: readonly { readonly keyId: string; readonly key: Uint8Array; readonly excludeFromOidcDiscovery: boolean }[]
  readonly dataTimestamp: { readonly seconds: number; readonly nanos: number } | null
  readonly refreshHintSeconds: number
}

export interface ExternalSigner {
  readonly signer: TokenSigner
  readonly keySet: KeySet
  /** The service's maximum lifetime of a token. */
  readonly maxExpirationSeconds: number
  /** Fetches keys at the service's interval, until the signal aborts; then closes the connection. */
  run(signal: AbortSignal): Promise<void>
}

export interface ExternalSignerDeps {
  readonly service: SignerService
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

const minExpirationSeconds = 600
const retryMs = 10_000
const longestKeyId = 1024
const algorithms: ReadonlySet<unknown> = new Set(['RS256', 'ES256', 'ES384', 'ES512'])
const headerFields: ReadonlySet<string> = new Set(['alg', 'kid', 'typ'])

/** Resolves when the service has sent its keys and its metadata. @throws Error when it does not, or when they are invalid */
export async function createExternalSigner(deps: ExternalSignerDeps): Promise<ExternalSigner> {
  const service = measured(deps)
  const keySet = new FetchedKeySet(service, deps)
  const failed = (error: Error) => {
    throw new Error(`while setting up external-jwt-signer: ${error.message}`, { cause: error })
  }
  await keySet.fetch().catch(failed)
  const { maxTokenExpirationSeconds } = await service.metadata().catch(failed)
  if (maxTokenExpirationSeconds < minExpirationSeconds) {
    throw new Error(`max token life supported by external-jwt-signer (${maxTokenExpirationSeconds}s) is less than acceptable (min ${minExpirationSeconds}s)`)
  }
  return {
    signer: signerOf(service, keySet, deps.metrics),
    keySet,
    maxExpirationSeconds: maxTokenExpirationSeconds,
    async run(signal) {
      await keySet.run(signal)
      service.close()
    },
  }
}

function signerOf(service: SignerService, keySet: FetchedKeySet, metrics: Metrics): TokenSigner {
  const requests = metrics.counter({
    name: 'apiserver_externaljwt_sign_request_total',
    help: 'Tokens that were to be signed, by how it went.',
    labels: ['code'],
  })
  const signed = async (claims: object): Promise<string> => {
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
    const { header, signature } = await service.sign(payload).catch((error: Error) => {
      throw new Error(`while signing jwt: ${error.message}`, { cause: error })
    })
    const fault = await headerFault(header, keySet)
    if (fault !== undefined) throw new Error(`while validating header: ${fault}`)
    if (signature === '') throw new Error('empty signature returned')
    return `${header}.${payload}.${signature}`
  }
  return {
    async sign(claims) {
      try {
        const token = await signed(claims)
        requests.inc({ code: 'OK' })
        return token
      } catch (error) {
        requests.inc({ code: codeOf(error) })
        throw error
      }
    },
  }
}

async function headerFault(text: string, keySet: FetchedKeySet): Promise<string | undefined> {
  let header: Readonly<Record<string, unknown>>
  try {
    header = JSON.parse(String(decodeBase64Url(text))) as Readonly<Record<string, unknown>>
  } catch (error) {
    return `while parsing header JSON: ${(error as Error).message}`
  }
  const unknown = Object.keys(header).find((name) => !headerFields.has(name))
  if (unknown !== undefined) return `while parsing header JSON: json: unknown field ${JSON.stringify(unknown)}`
  const { typ, kid, alg } = header
  if (typ !== 'JWT') return 'bad type'
  if (typeof kid !== 'string' || kid === '') return 'key id missing'
  if (kid.length > longestKeyId) return 'key id longer than 1 kb'
  if (!algorithms.has(alg)) return `bad signing algorithm ${JSON.stringify(alg ?? '')}`
  if (keysFor(keySet, kid).length === 0) await keySet.refresh()
  // Such keys only verify older tokens; verifiers outside do not have them.
  const isHidden = keysFor(keySet, kid).some((key) => key.isHidden)
  return isHidden ? `key used for signing JWT (kid: ${kid}) is excluded from OIDC discovery docs` : undefined
}

class FetchedKeySet implements KeySet {
  keys: readonly VerificationKey[] = []
  readonly #service: SignerService
  readonly #deps: ExternalSignerDeps
  readonly #count: (code: string) => void
  readonly #succeeded: (dataSeconds: number) => void
  #told = ''
  #nextMs = 0
  #fetching: Promise<void> | undefined

  constructor(service: SignerService, deps: ExternalSignerDeps) {
    this.#service = service
    this.#deps = deps
    const name = (rest: string) => `apiserver_externaljwt_fetch_keys_${rest}`
    const requests = deps.metrics.counter({ name: name('request_total'), help: 'How often keys were asked for, by how it went.', labels: ['code'] })
    const last = deps.metrics.gauge({ name: name('success_timestamp'), help: 'When keys were last fetched, in seconds since the epoch.' })
    const data = deps.metrics.gauge({ name: name('data_timestamp'), help: 'How old the signer says that the keys are, in seconds since the epoch.' })
    this.#count = (code) => requests.inc({ code })
    this.#succeeded = (dataSeconds) => {
      last.set(deps.clock.now() / 1000)
      data.set(dataSeconds)
    }
  }

  get maxAgeSeconds(): number {
    return Math.max(0, Math.floor((this.#nextMs - this.#deps.clock.now()) / 1000))
  }

  refresh(): Promise<void> {
    return this.fetch().catch((error: Error) => this.#deps.log.error(error, 'Error while syncing keys'))
  }

  /** @throws Error when the service does not answer, or its answer is invalid */
  fetch(): Promise<void> {
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps
    let waitMs = this.#nextMs - clock.now()
    while (!signal.aborted) {
      await clock.sleep(Math.max(0, waitMs), signal).catch(() => undefined)
      if (signal.aborted) return
      try {
        await this.fetch()
        waitMs = this.#nextMs - clock.now()
      } catch (error) {
        log.error(error as Error, 'The keys of service account tokens could not be fetched; those of before still hold')
        waitMs = retryMs
      }
    }
  }

  async #fetch(): Promise<void> {
    try {
      const fetched = await this.#service.fetchKeys()
      const keys = keysOf(fetched)
      const told = JSON.stringify([fetched.dataTimestamp, keys.map(({ id, isHidden }) => [id, isHidden])])
      if (told !== this.#told) this.keys = keys
      this.#told = told
      this.#nextMs = this.#deps.clock.now() + fetched.refreshHintSeconds * 1000
      this.#count('OK')
      this.#succeeded(Number(fetched.dataTimestamp?.seconds) + Number(fetched.dataTimestamp?.nanos) / 1e9)
    } catch (error) {
      this.#count(codeOf(error))
      throw new Error(`while fetching token verification keys: ${(error as Error).message}`, { cause: error })
    }
  }
}

/** @throws Error for invalid keys */
function keysOf({ keys, dataTimestamp, refreshHintSeconds }: FetchedKeys): VerificationKey[] {
  if (refreshHintSeconds <= 0) throw new Error(`found invalid refresh hint (${refreshHintSeconds}s)`)
  if (keys.length === 0) throw new Error('found no keys')
  if (!dataTimestamp) throw new Error('invalid data timestamp: proto: invalid nil Timestamp')
  return keys.map(({ keyId, key, excludeFromOidcDiscovery }) => {
    if (keyId === '' || keyId.length > longestKeyId) throw new Error(`found invalid public key id ${JSON.stringify(keyId)}`)
    if (key.length === 0) throw new Error('found empty public key')
    try {
      const publicKey = createPublicKey({ key: Buffer.from(key), format: 'der', type: 'spki' })
      return { ...verificationKeyOf(publicKey), id: keyId, isHidden: excludeFromOidcDiscovery }
    } catch (error) {
      throw new Error(`while parsing external public keys: ${(error as Error).message}`, { cause: error })
    }
  })
}

const durationBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** The same service, with its calls timed. */
function measured({ service, clock, metrics }: ExternalSignerDeps): SignerService {
  const durations = metrics.histogram({
    name: 'apiserver_externaljwt_request_duration_seconds',
    help: 'How long calls of the external signer took, in seconds.',
    labels: ['method', 'code'],
    buckets: durationBuckets,
  })
  const timed = async <T>(name: string, call: Promise<T>): Promise<T> => {
    const start = clock.monotonicMs()
    const done = (code: string) => durations.observe((clock.monotonicMs() - start) / 1000, { method: `/v1.ExternalJWTSigner/${name}`, code })
    try {
      const answer = await call
      done('OK')
      return answer
    } catch (error) {
      done(codeOf(error))
      throw error
    }
  }
  return {
    sign: (claims) => timed('Sign', service.sign(claims)),
    fetchKeys: () => timed('FetchKeys', service.fetchKeys()),
    metadata: () => timed('Metadata', service.metadata()),
    close: () => service.close(),
  }
}

/** The gRPC status behind an error. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('grpcStatus' in at) return String(at.grpcStatus)
  }
  return 'unknown-non-grpc'
}
