/** The machine that simulated kubelets of tests report. */
export const simulatedMachine = {
  cpus: 4,
  memoryBytes: 8 * 2 ** 30,
  ephemeralStorageBytes: 100 * 2 ** 30,
  architecture: 'amd64',
  kernelVersion: '6.1.0',
  osImage: 'Simulated',
  machineID: 'm',
  systemUUID: 's',
  bootID: 'b',
}
