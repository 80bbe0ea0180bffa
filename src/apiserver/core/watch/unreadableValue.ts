/** A stored value that cannot be decrypted or is damaged (L3). Upstream: the errors of apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go. */
import { internalError, type StatusError } from '#api/machinery/status'

export class UnreadableValue {
  readonly error: Error
  /** True: the bytes are not a valid object. False: the key to decrypt them is missing, and may be added later. */
  readonly isDamaged: boolean

  constructor(error: Error, isDamaged = false) {
    this.error = error
    this.isDamaged = isDamaged
  }

  /** The error of a read of this object. */
  failure(): StatusError {
    return internalError(this.error)
  }

  /** The error of a read of several objects, which names this one. */
  failureOf(key: string): StatusError {
    const what = this.isDamaged ? 'decode' : 'transform'
    return internalError(new Error(`unable to ${what} key ${JSON.stringify(key)}: ${this.error.message}`, { cause: this.error }))
  }
}
