/** Reads ConfigMaps and Secrets that a pod may do without (L3): for its environment and for its volumes. */
import { isStatus } from '#api/machinery/status'

/** The object, or undefined when it is optional and missing. */
export async function optionally<T>(optional: boolean | undefined, read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (optional && isStatus(error, 'NotFound')) return undefined
    throw error
  }
}
