/** What each of a driver's controllers gets (L3), and the waits of its queues. */
import type { Random } from '#base/random'
import { itemExponentialFailureRateLimiter, type RateLimiter } from '#client/workqueue/rateLimiter'
import type { ControllerContext } from '#controllers/framework/controller'
import type { CsiConnection, CsiDriverFacts } from './driver.ts'

export interface CsiControllerOptions {
  /** Of calls to the driver; undefined: upstream's, which differs by controller. */
  readonly timeoutMs?: number | undefined
  readonly retryStartMs: number
  readonly retryMaxMs: number
  /** How often attachments are compared with what the driver lists. */
  readonly compareMs: number
  /** Undefined: upstream's number, which differs by controller. */
  readonly workers?: number | undefined
  readonly extraCreateMetadata: boolean
  readonly defaultFsType: string
  readonly strictTopology: boolean
  readonly immediateTopology: boolean
  readonly publishReadonly: boolean
  readonly hasTopology: boolean
  /** Undefined: the driver's capacity is not published. */
  readonly capacity?: CapacityOptions | undefined
  /** Distinguishes this process in events and volumes. */
  readonly identity: string
}

export interface CapacityOptions {
  /** The namespace in which the CSIStorageCapacity objects are made. */
  readonly namespace: string
  readonly pollMs: number
  /** Also for classes whose volumes are created before a pod uses them. */
  readonly isForImmediate: boolean
}

export const defaultCsiControllerOptions: CsiControllerOptions = {
  retryStartMs: 1000,
  retryMaxMs: 300_000,
  compareMs: 60_000,
  extraCreateMetadata: false,
  defaultFsType: '',
  strictTopology: false,
  immediateTopology: true,
  publishReadonly: false,
  hasTopology: true,
  identity: '',
}

export interface CsiContext extends ControllerContext {
  readonly connection: CsiConnection
  readonly driver: CsiDriverFacts
  readonly options: CsiControllerOptions
}

/** Doubled with each failure; less by up to the first wait, so that failures of one cause do not come back together. */
export function retryLimiter({ options, random }: CsiContext): RateLimiter<string> {
  const limiter = itemExponentialFailureRateLimiter<string>(options.retryStartMs, options.retryMaxMs)
  return { ...limiter, when: (item) => jittered(limiter.when(item), options.retryStartMs, random) }
}

const jittered = (waitMs: number, mostMs: number, random: Random) => Math.max(0, waitMs - mostMs * random.next())
