/** Capabilities of a process, as Linux shows them (L1). */

/** Bits of the sets in /proc/PID/status. Source: linux/capability.h. */
export const capabilities = { sysResource: 24 } as const

/** Whether the process may use the capability now. @param status the text of its /proc/PID/status */
export function hasCapability(status: string, bit: number): boolean {
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? []
  return ((BigInt(`0x${effective}`) >> BigInt(bit)) & 1n) === 1n
}
