/** Work on objects that others may delete meanwhile (L2). */
import { isStatus } from '#api/machinery/status'

/** The answer; undefined where the server says NotFound. @throws every other error */
export async function unlessGone<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (isStatus(error, 'NotFound')) return undefined
    throw error
  }
}
