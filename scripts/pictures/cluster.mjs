/** A simulated cluster of its own for the pictures, through the command line. */
import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

const skiff = path.resolve(import.meta.dirname, '../../bin/skiff')

/** @param flags of `skiff up` */
export async function startCluster(name, flags) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-pictures-'))
  const env = { ...process.env, HOME: directory, SKIFF_HOME: path.join(directory, 'home'), KUBECONFIG: path.join(directory, 'kubeconfig') }
  const run = async (program, args) => (await promisify(execFile)(program, args, { env, maxBuffer: 1 << 26 })).stdout.trim()
  const cluster = {
    kubectl: (...args) => run('kubectl', args),
    apply: (objects) => pipe('kubectl', ['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), env),
    create: (object, ...args) => pipe('kubectl', ['create', ...args, '-f', '-'], JSON.stringify(object), env),
    /** @returns the address that logs in once, and a function that ends the page */
    page: () => servePage(env),
    async remove() {
      await run(process.execPath, [skiff, 'delete', name])
      fs.rmSync(directory, { recursive: true, force: true })
    },
  }
  try {
    await run(process.execPath, [skiff, 'up', name, '--runtime', 'simulated', '--nodes', '0', ...flags])
  } catch (error) {
    await cluster.remove()
    throw error
  }
  return cluster
}

function pipe(program, args, input, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['pipe', 'ignore', 'inherit'] })
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program} ${args.join(' ')}: exit ${code}`))))
    child.stdin.end(input)
  })
}

function servePage(env) {
  const child = spawn(process.execPath, [skiff, 'ui', '--print-url'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const end = () =>
    new Promise((resolve) => {
      child.once('exit', resolve)
      child.kill()
    })
  return new Promise((resolve, reject) => {
    child.stdout.once('data', (text) => resolve({ url: String(text).trim(), end }))
    child.once('exit', (code) => reject(new Error(`skiff ui ended with ${code}`)))
  })
}
