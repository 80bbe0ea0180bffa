/** How much memory programs that this one starts can still get (L1). */
import { freemem } from 'node:os'

/** Bytes: what the host has free, or less where a limit of a control group leaves less. */
export function availableMemory(): number {
  return Math.min(freemem(), process.availableMemory())
}
