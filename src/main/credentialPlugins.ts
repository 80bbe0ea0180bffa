/** Runs the programs that a kubeconfig names for credentials (L5). */
import { spawn } from 'node:child_process'
import type { PluginRunner } from '#client/execCredential'

export const plugins: PluginRunner = {
  get interactive() {
    return process.stdin.isTTY === true
  },
  run: (command, args, env, interactive) =>
    new Promise((resolve, reject) => {
      const child = spawn(command, [...args], { env: { ...process.env, ...env }, stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'] })
      const parts: Buffer[] = []
      child.stdout?.on('data', (part: Buffer) => parts.push(part))
      child.once('error', reject)
      child.once('close', (code, signal) => {
        if (code === 0) resolve(Buffer.concat(parts).toString())
        else reject(new Error(signal ? `ended by ${signal}` : `exit code ${code}`))
      })
    }),
}
