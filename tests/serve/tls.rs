//! Tools with `https` addresses: served by Python, with certificates of an authority of one's own.
use super::{
    front::{Shop, until},
    request,
};
use serde_json::json;
use std::{
    fs,
    process::{Child, Command, Stdio},
};
use tr_testkit::tls::Authority;

const SERVER: &str = r#"
import http.server, os, ssl, sys
class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "13")
        self.end_headers()
        self.wfile.write(b'{"paid":true}')
        self.close_connection = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.pem", "server.key")
server = http.server.HTTPServer(("127.0.0.1", 0), Shop)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open("port.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
"#;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The shop's tool, which the config calls by each of its names.
fn server(shop: &Shop, authority: &Authority) -> (Server, u16) {
    let own = authority.issue(["localhost"]);
    fs::write(shop.path("server.pem"), own.certificate()).unwrap();
    fs::write(shop.path("server.key"), own.key()).unwrap();
    fs::write(shop.path("authority.pem"), authority.pem()).unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", SERVER]).current_dir(shop.folder.path());
    // It prints each connection that fails, which is what some of these shall do.
    let child = python.stderr(Stdio::null()).spawn().unwrap();
    let server = Server(child);
    until(|| shop.path("port").exists());
    let port = fs::read_to_string(shop.path("port")).unwrap().parse().unwrap();
    (server, port)
}

#[test]
fn only_servers_that_an_authority_names_are_paid() {
    let shop = Shop::new("");
    let (_server, port) = server(&shop, &Authority::new());
    let config = format!(
        "[retry]\nbase_ms = 1\n\
         [tools.pay]\neffect = \"mutating\"\nurl = \"https://localhost:{port}/pay\"\n\
         [tools.other]\neffect = \"mutating\"\nurl = \"https://127.0.0.1:{port}/pay\"\n"
    );
    fs::write(shop.path("tools.toml"), config).unwrap();
    {
        let front = shop.open(&[]);
        let answer = front.call(&request("pay", &json!({}), "a"));
        assert_eq!((&answer["status"], &answer["error"]["ran"]), (&json!("error"), &json!("no")));
    }
    let ca = shop.path("authority.pem").display().to_string();
    let front = shop.open(&["--ca", &ca]);
    // Each on a new connection, since the server closes them.
    for key in ["b", "c", "d"] {
        let answer = front.call(&request("pay", &json!({"key": key}), key));
        assert_eq!(answer["result"], json!({"paid": true}), "{answer}");
    }
    // The certificate does not name this address.
    let answer = front.call(&request("other", &json!({}), "e"));
    assert_eq!((&answer["status"], &answer["error"]["ran"]), (&json!("error"), &json!("no")));
}

#[test]
fn what_others_could_read_is_refused_at_the_start() {
    let shop = Shop::new("[tools.pay]\nurl = \"http://192.0.2.1/pay\"");
    fs::write(shop.path("empty.pem"), "").unwrap();
    fs::write(shop.path("no.pem"), "no certificate").unwrap();
    for (options, why) in [
        (&[][..], "use https, or allow it with --insecure-http"),
        (&["--ca", "/no/such/file"], "--ca /no/such/file"),
        (&["--ca", &shop.path("no.pem").display().to_string()], "no certificate"),
        (&["--ca", &shop.path("empty.pem").display().to_string()], "the file is empty"),
    ] {
        let output = shop.command(options).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(why), "{options:?}: {said}");
    }
    shop.open(&["--insecure-http"]);
}
