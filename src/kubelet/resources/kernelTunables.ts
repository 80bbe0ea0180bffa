/**
 * Settings of the kernel that a node should have (L3). With protectKernelDefaults a kubelet refuses to run on another kernel; it never changes them itself,
 * since they are the whole machine's. Upstream: kubelet/cm/container_manager_linux.go setupKernelTunables, pkg/util/sysctl (v1.36).
 */

const wanted: readonly (readonly [name: string, value: number])[] = [
  ['vm/overcommit_memory', 1],
  ['vm/panic_on_oom', 0],
  ['kernel/panic', 10],
  ['kernel/panic_on_oops', 1],
  ['kernel/keys/root_maxkeys', 1_000_000],
  ['kernel/keys/root_maxbytes', 25_000_000],
]

/** @param read the text of a file below /proc/sys. @throws Error that names every setting which is another one */
export async function checkKernelTunables(read: (name: string) => Promise<string>): Promise<void> {
  const found = await Promise.all(wanted.map(async ([name, value]) => ({ name, value, actual: Number((await read(name)).trim()) })))
  const wrong = found.filter(({ value, actual }) => value !== actual)
  if (wrong.length === 0) return
  const faults = wrong.map(({ name, value, actual }) => `invalid kernel flag: ${name}, expected value: ${value}, actual value: ${actual}`)
  throw new Error(`${faults.join('; ')}: set them with sysctl, or set protectKernelDefaults to false`)
}
