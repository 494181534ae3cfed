// relisten.mjs (node --import) has a program that would listen on a port of its own choice listen on 127.0.0.1:LAB_PORT.
import { Server } from 'node:net';

const listen = Server.prototype.listen;
Server.prototype.listen = function (_port, ...rest) {
  return listen.call(this, Number(process.env.LAB_PORT), '127.0.0.1', ...rest.filter(argument => typeof argument === 'function'));
};
