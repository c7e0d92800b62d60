//! The cases of Curio's `test_socket.py`, `test_io.py` and `test_network.py`, ported, in a module
//! for each file. A test has the name of its case without `test_`. The guide has the table of all
//! cases, on the page `curio`.
//!
//! Tests of sockets run over the loopback interface, on the real machine. Tests of streams run over
//! pipes in memory, on the simulated machine. A timeout on the real machine is used only where no
//! other event can happen, so that its length does not matter.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use net::pipe::{PipeEnd, duplex};
use net::{BufReader, Stream, TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use support::{Notes, ms, op, short};
use traps::{Interruptible, spawn, timeout_after};

const LOOPBACK: &str = "127.0.0.1:0";

/// More than the system buffers of a connection hold.
const MUCH: usize = 10_000_000;

fn run<F: Future>(main: F) -> F::Output {
    kernel::run(main).unwrap()
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Two ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let (mut listener, address) = listen();
    let client = TcpStream::connect(address).await.unwrap();
    (client, listener.accept_stream().await.unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The result of a read, as text; empty at the end.
async fn read_some(stream: &mut impl Stream) -> io::Result<String> {
    let mut buf = [0; 100];
    let n = stream.read(&mut buf).await?;
    Ok(text(&buf[..n]))
}

/// Sends everything back. Notes all of it.
async fn echo(mut stream: impl Stream, notes: Notes) -> io::Result<()> {
    notes.add("start");
    loop {
        let got = read_some(&mut stream).await?;
        if got.is_empty() {
            notes.add("done");
            return Ok(());
        }
        notes.add(format!("handler:{got}"));
        stream.write_all(got.as_bytes()).await?;
    }
}

/// Sends two messages and reads the answer to each. Notes them.
async fn ask_twice(mut stream: impl Stream, notes: &Notes) -> io::Result<()> {
    for message in ["Msg1", "Msg2"] {
        stream.write_all(message.as_bytes()).await?;
        notes.add(format!("client:{}", read_some(&mut stream).await?));
    }
    notes.add("close");
    Ok(())
}

/// The expected notes of both.
const ECHOED: &str = "start handler:Msg1 client:Msg1 handler:Msg2 client:Msg2 close done";

async fn read_all(stream: &mut impl Stream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all, 2 * MUCH).await?;
    Ok(all)
}

/// The lines up to the end.
async fn read_lines(stream: &mut BufReader<PipeEnd>, lines: &mut Vec<String>) -> io::Result<()> {
    let mut line = Vec::new();
    while stream.read_line(&mut line, 100).await? {
        lines.push(text(&line));
        line.clear();
    }
    Ok(())
}

/// A stream. Its other end sends these parts, a tenth of a second apart, and closes.
async fn sent(parts: &'static [&'static str]) -> BufReader<PipeEnd> {
    let (near, mut far) = duplex(1024);
    let peer = async move {
        for part in parts {
            far.write_all(part.as_bytes()).await?;
            op(1).await?;
        }
        io::Result::Ok(())
    };
    spawn("peer", peer).detached().await;
    BufReader::new(near)
}

mod test_socket {
    use super::*;

    #[test]
    fn tcp_echo() {
        let notes = Notes::default();
        run(async {
            let (mut listener, address) = listen();
            let noted = notes.clone();
            let server = async move { echo(listener.accept_stream().await?, noted).await };
            let mut server = spawn("server", server).await;
            ask_twice(TcpStream::connect(address).await.unwrap(), &notes).await.unwrap();
            server.join().await.unwrap().unwrap();
        });
        assert_eq!(notes.text(), ECHOED);
    }

    #[test]
    fn tcp_file_echo() {
        let notes = Notes::default();
        run(async {
            let (client, server) = pair().await;
            let noted = notes.clone();
            let server = async move {
                let (mut stream, mut line) = (BufReader::new(server), Vec::new());
                while stream.read_line(&mut line, 100).await? {
                    noted.add(format!("handler:{}", text(&line)));
                    line.push(b'\n');
                    stream.write_all(&line).await?;
                    line.clear();
                }
                Ok::<_, io::Error>(())
            };
            let mut server = spawn("server", server).await;
            let (mut client, mut line) = (BufReader::new(client), Vec::new());
            for message in ["Msg1\n", "Msg2\n"] {
                client.write_all(message.as_bytes()).await.unwrap();
                assert!(client.read_line(&mut line, 100).await.unwrap());
                notes.add(format!("client:{}", text(&line)));
                line.clear();
            }
            drop(client);
            server.join().await.unwrap().unwrap();
        });
        assert_eq!(notes.text(), "handler:Msg1 client:Msg1 handler:Msg2 client:Msg2");
    }

    #[test]
    fn udp_echo() {
        let notes = Notes::default();
        run(async {
            let server = UdpSocket::bind(LOOPBACK).unwrap();
            let address = server.local_addr().unwrap();
            let noted = notes.clone();
            let serve = async move {
                let mut buf = [0; 100];
                let (n, peer) = server.recv_from(&mut buf).await.unwrap();
                noted.add(format!("server:{}", text(&buf[..n])));
                server.send_to(&buf[..n], peer).await.unwrap();
            };
            spawn("server", serve).detached().await;
            let (client, mut buf) = (UdpSocket::bind(LOOPBACK).unwrap(), [0; 100]);
            client.send_to(b"Msg1", address).await.unwrap();
            let (n, peer) = client.recv_from(&mut buf).await.unwrap();
            notes.add(format!("client:{}", text(&buf[..n])));
            assert_eq!(peer, address);
        });
        assert_eq!(notes.text(), "server:Msg1 client:Msg1");
    }

    #[test]
    fn recvfrom_timeout() {
        run(async {
            let (socket, mut buf) = (UdpSocket::bind(LOOPBACK).unwrap(), [0; 100]);
            assert_eq!(short(&timeout_after(ms(5), socket.recv_from(&mut buf)).await), "TT");
        });
    }

    #[test]
    fn recvfrom_cancel() {
        run(async {
            let socket = UdpSocket::bind(LOOPBACK).unwrap();
            let server = async move { short(&socket.recv_from(&mut [0; 100]).await) };
            let mut server = spawn("server", server).await;
            traps::yield_now().await.unwrap();
            server.cancel_because("").await.unwrap();
            assert_eq!(server.join().await, Ok("CAN"));
        });
    }

    #[test]
    fn accept_timeout() {
        run(async {
            let (mut listener, _) = listen();
            assert_eq!(short(&timeout_after(ms(5), listener.accept()).await), "TT");
        });
    }

    #[test]
    fn accept_cancel() {
        run(async {
            let (mut listener, _) = listen();
            let server = async move { short(&listener.accept().await) };
            let mut server = spawn("server", server).await;
            traps::yield_now().await.unwrap();
            server.cancel_because("").await.unwrap();
            assert_eq!(server.join().await, Ok("CAN"));
        });
    }

    #[test]
    fn recv_timeout() {
        run(async {
            let (_client, mut server) = pair().await;
            assert_eq!(short(&timeout_after(ms(5), read_some(&mut server)).await), "TT");
        });
    }

    #[test]
    fn recv_cancel() {
        run(async {
            let (_client, mut stream) = pair().await;
            let mut server =
                spawn("server", async move { short(&read_some(&mut stream).await) }).await;
            traps::yield_now().await.unwrap();
            server.cancel_because("").await.unwrap();
            assert_eq!(server.join().await, Ok("CAN"));
        });
    }

    fn numbers() -> Vec<u8> {
        (0..1_000_000_u32).flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn buffer_into() {
        run(async {
            let (mut sender, mut receiver) = pair().await;
            let send = async move { sender.write_all(&numbers()).await };
            let mut sender = spawn("sender", send).await;
            let mut room = vec![0; numbers().len()];
            let mut filled = 0;
            while filled < room.len() {
                match receiver.read(&mut room[filled..]).await.unwrap() {
                    0 => break,
                    n => filled += n,
                }
            }
            sender.join().await.unwrap().unwrap();
            assert!(room == numbers());
        });
    }

    #[test]
    fn buffer_stream_into() {
        run(async {
            let (mut sender, receiver) = pair().await;
            let send = async move {
                sender.write_all(b"Hello world\n").await?;
                sender.write_all(&numbers()).await
            };
            let mut sender = spawn("sender", send).await;
            let (mut stream, mut line) = (BufReader::new(receiver), Vec::new());
            assert!(stream.read_line(&mut line, 100).await.unwrap());
            assert_eq!(text(&line), "Hello world");
            let mut room = vec![0; numbers().len()];
            Stream::read_exact(&mut stream, &mut room).await.unwrap();
            sender.join().await.unwrap().unwrap();
            assert!(room == numbers());
        });
    }

    #[test]
    fn read_write_on_same_socket() {
        run(async {
            let (mut near, mut far) = pair().await;
            let both = async move {
                let (mut reads, mut writes) = near.split();
                let (much, mut buf) = (vec![b'x'; MUCH], [0; 100]);
                traps::join(reads.read(&mut buf), writes.write_all(&much)).await
            };
            let mut both = spawn("both", both).await;
            far.write_all(b"x").await.unwrap();
            assert_eq!(read_all(&mut far).await.unwrap().len(), MUCH);
            let (read, written) = both.join().await.unwrap();
            assert_eq!(read.unwrap(), 1);
            written.unwrap();
        });
    }

    #[test]
    fn create_bad_connection() {
        run(async {
            // The system never assigns port 1 to another test.
            let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        });
    }

    #[test]
    fn socket_funcs() {
        run(async {
            let found = net::resolve("localhost:80").await.unwrap();
            assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
        });
    }
}

mod test_io {
    use std::rc::Rc;

    use kernel::{Kernel, Sim};
    use support::at;
    use testing::{Setup, run};
    use traps::io::{Direction, Io, Scripted};

    use super::*;

    /// Curio refuses to return the socket while bytes are buffered; here they are returned too.
    #[test]
    fn socketstream_bad_blocking() {
        run(async {
            let (mut stream, mut line) = (sent(&["hello\nworld\n"]).await, Vec::new());
            assert!(stream.read_line(&mut line, 100).await.unwrap());
            let (_, rest) = stream.into_parts();
            assert_eq!((text(&line), text(&rest)), ("hello".to_owned(), "world\n".to_owned()));
        });
    }

    #[test]
    fn read_partial() {
        run(async {
            let (mut stream, mut line) = (sent(&["hello\nworld\n"]).await, Vec::new());
            assert!(stream.read_line(&mut line, 100).await.unwrap());
            let mut two = [0; 2];
            assert_eq!(stream.read(&mut two).await.unwrap(), 2);
            let rest = read_some(&mut stream).await.unwrap();
            assert_eq!((text(&line).as_str(), &two, rest.as_str()), ("hello", b"wo", "rld\n"));
        });
    }

    #[test]
    fn readall() {
        run(async {
            let mut stream = sent(&["Msg1\n", "Msg2\n", "Msg3\n"]).await;
            assert_eq!(read_all(&mut stream).await.unwrap(), b"Msg1\nMsg2\nMsg3\n");
        });
    }

    #[test]
    fn readall_partial() {
        run(async {
            let (mut stream, mut line) = (sent(&["hello\nworld\n"]).await, Vec::new());
            assert!(stream.read_line(&mut line, 100).await.unwrap());
            assert_eq!(read_all(&mut stream).await.unwrap(), b"world\n");
        });
    }

    /// Curio puts the bytes read into the exception; here they are in the caller's buffer.
    #[test]
    fn readall_timeout() {
        run(async {
            let (mut stream, mut all) = (sent(&["Msg1\n", "Msg2\n"]).await, Vec::new());
            let read = timeout_after(ms(50), stream.read_to_end(&mut all, 100)).await;
            assert_eq!((short(&read), text(&all).as_str()), ("TT", "Msg1\n"));
            stream.read_to_end(&mut all, 100).await.unwrap();
            assert_eq!(text(&all), "Msg1\nMsg2\n");
        });
    }

    #[test]
    fn read_exactly() {
        run(async {
            let mut stream = sent(&["Msg1\nMsg2\nMsg3\n"]).await;
            for message in [b"Msg1\n", b"Msg2\n", b"Msg3\n"] {
                let mut five = [0; 5];
                stream.read_exact(&mut five).await.unwrap();
                assert_eq!(&five, message);
            }
        });
    }

    /// Curio puts the bytes read into the exception; here they stay in the stream.
    #[test]
    fn read_exactly_incomplete() {
        run(async {
            let mut stream = sent(&["Msg1\nMsg2\nMsg3\n"]).await;
            let error = stream.read_exact(&mut [0; 100]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            assert_eq!(stream.buffer(), b"Msg1\nMsg2\nMsg3\n");
        });
    }

    #[test]
    fn read_exactly_timeout() {
        run(async {
            let (mut stream, mut ten) = (sent(&["Msg1\n", "Msg2\n"]).await, [0; 10]);
            let read = timeout_after(ms(50), stream.read_exact(&mut ten)).await;
            assert_eq!((short(&read), stream.buffer()), ("TT", b"Msg1\n".as_slice()));
            stream.read_exact(&mut ten).await.unwrap();
            assert_eq!(&ten, b"Msg1\nMsg2\n");
        });
    }

    #[test]
    fn readline() {
        run(async {
            let mut stream = sent(&["Msg1\nMsg2\nMsg3\n"]).await;
            for message in ["Msg1", "Msg2", "Msg3"] {
                let mut line = Vec::new();
                assert!(stream.read_line(&mut line, 100).await.unwrap());
                assert_eq!(text(&line), message);
            }
        });
    }

    #[test]
    fn readlines() {
        run(async {
            let (mut stream, mut lines) = (sent(&["Msg1\nMsg2\nMsg3\n"]).await, Vec::new());
            read_lines(&mut stream, &mut lines).await.unwrap();
            assert_eq!(lines, ["Msg1", "Msg2", "Msg3"]);
        });
    }

    #[test]
    fn readlines_timeout() {
        run(async {
            let (mut stream, mut lines) = (sent(&["Msg1\nMsg2\n", "Msg3\n"]).await, Vec::new());
            let read = timeout_after(ms(50), read_lines(&mut stream, &mut lines)).await;
            assert_eq!(short(&read), "TT");
            assert_eq!(lines, ["Msg1", "Msg2"]);
        });
    }

    #[test]
    fn writelines() {
        run(async {
            let (mut near, mut far) = duplex(4);
            let write = async move {
                for line in ["Msg1\n", "Msg2\n", "Msg3\n"] {
                    far.write_all(line.as_bytes()).await.unwrap();
                }
            };
            spawn("writer", write).detached().await;
            assert_eq!(read_all(&mut near).await.unwrap(), b"Msg1\nMsg2\nMsg3\n");
        });
    }

    /// Curio counts the written bytes in the exception; here the stream counts them.
    #[test]
    fn writelines_timeout() {
        super::run(async {
            let (mut client, mut server) = pair().await;
            let lines = async {
                for n in 0.. {
                    client.write_all(format!("Msg{n}\n").repeat(1000).as_bytes()).await?;
                }
                Ok::<_, io::Error>(())
            };
            assert_eq!(short(&timeout_after(ms(5), lines).await), "TT");
            let written = client.written();
            drop(client);
            assert_eq!(read_all(&mut server).await.unwrap().len() as u64, written);
        });
    }

    #[test]
    fn write_timeout() {
        super::run(async {
            let (mut client, mut server) = pair().await;
            let much = vec![b'x'; MUCH];
            assert_eq!(short(&timeout_after(ms(5), client.write_all(&much)).await), "TT");
            let written = client.written();
            drop(client);
            assert_eq!(read_all(&mut server).await.unwrap().len() as u64, written);
        });
    }

    #[test]
    fn iterline() {
        run(async {
            let (mut stream, mut seen) = (sent(&["Msg1\nMsg2\nMsg3\n"]).await, Vec::new());
            let mut lines = stream.lines(100);
            while let Some(line) = lines.next().await.unwrap() {
                seen.push(text(line));
            }
            assert_eq!(seen, ["Msg1", "Msg2", "Msg3"]);
        });
    }

    #[test]
    fn sendall_cancel() {
        super::run(async {
            let (mut client, mut server) = pair().await;
            let write = async move {
                let why = client.write_all(&vec![b'x'; MUCH]).await.unwrap_err();
                assert!(why.interrupt().unwrap().is_cancelled());
                client.written()
            };
            let mut client = spawn("client", write).await;
            server.readable().await.unwrap();
            client.cancel_because("").await.unwrap();
            let written = client.join().await.unwrap();
            assert_eq!(read_all(&mut server).await.unwrap().len() as u64, written);
        });
    }

    #[test]
    fn io_waiting() {
        let mut kernel = Kernel::new(Sim::new());
        let main = async {
            let wait = async { short(&Io::new(Scripted(7)).readable().await) };
            let task = spawn("handler", wait).await;
            traps::yield_now().await.unwrap();
            task
        };
        let task = kernel.run(main).unwrap();
        let waits = |kernel: &Kernel<Sim>| {
            let tasks = kernel.tasks().into_iter().filter(|task| task.name == "handler");
            tasks.flat_map(|task| task.parked).map(|wait| wait.trap).collect::<Vec<_>>()
        };
        assert_eq!(waits(&kernel), ["io f1 read"]);
        kernel.run(task.cancel_because("")).unwrap().unwrap();
        assert!(waits(&kernel).is_empty());
        drop(task);
        kernel.shutdown().unwrap();
    }

    #[test]
    fn io_unregister() {
        let sim = Sim::new().ready_at(at(1), 7, Direction::Write);
        Setup::new().sim(sim).run(async {
            let io = Rc::new(Io::new(Scripted(7)));
            let reads = io.clone();
            let reader = spawn("reader", async move { reads.readable().await }).await;
            traps::yield_now().await.unwrap();
            io.writable().await.unwrap();
            reader.cancel_because("").await.unwrap();
        });
    }
}

mod test_network {
    use super::*;

    #[test]
    fn tcp_echo() {
        let notes = Notes::default();
        run(async {
            let (mut listener, address) = listen();
            let noted = notes.clone();
            let server = async move {
                let accept = async || listener.accept_until_shutdown().await;
                let serving = net::serve(accept, 10, |mut stream| {
                    let noted = noted.clone();
                    async move { echo(&mut *stream, noted).await }
                });
                serving.await
            };
            let server = spawn("server", server).await;
            ask_twice(TcpStream::connect(address).await.unwrap(), &notes).await.unwrap();
            server.cancel_because("").await.unwrap();
        });
        assert_eq!(notes.text(), ECHOED);
    }

    #[test]
    fn unix_echo() {
        let notes = Notes::default();
        let path = std::env::temp_dir().join(format!("curio-unix-echo-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        run(async {
            let mut listener = UnixListener::bind(&path).unwrap();
            let noted = notes.clone();
            let server = async move { echo(listener.accept_stream().await?, noted).await };
            let mut server = spawn("server", server).await;
            ask_twice(UnixStream::connect(&path).await.unwrap(), &notes).await.unwrap();
            server.join().await.unwrap().unwrap();
        });
        std::fs::remove_file(path).ok();
        assert_eq!(notes.text(), ECHOED);
    }

    #[test]
    fn errors() {
        run(async {
            let name = TcpListener::bind("localhost:80").unwrap_err();
            assert_eq!(name.kind(), ErrorKind::InvalidInput, "a listener looks up no names");
            let (_listener, address) = listen();
            assert_eq!(TcpListener::bind(address).unwrap_err().kind(), ErrorKind::AddrInUse);
            let taken = UnixListener::bind(std::env::temp_dir()).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse, "a folder is there");
            let no_port = TcpStream::connect("localhost").await.unwrap_err();
            assert_eq!(no_port.kind(), ErrorKind::InvalidInput);
        });
    }
}
